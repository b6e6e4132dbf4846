#!/bin/bash
# Stand-in for the agent's run.sh and run-helper.sh with RUNNER_MANUALLY_TRAP_SIG: the listener in a process group of its own, a
# SIGINT to that group for INT and TERM, started again when it asks for it.
root=$(cd "$(dirname "$0")" && pwd)
set -m
interrupt() {
	kill -INT -"$listener"
	trap - INT TERM
}
while :; do
	trap interrupt INT TERM
	"$root/bin/Runner.Listener" run &
	listener=$!
	wait "$listener"
	status=$?
	case $status in
	2) sleep 5 ;;
	3 | 4)
		for _ in {1..31}; do
			[ -f update.finished ] && break
			sleep 1
		done
		rm -f update.finished
		;;
	0 | 1 | 5) exit 0 ;;
	7) exit 7 ;;
	*)
		if [ "$status" -gt 128 ] && kill -0 "$listener" 2>/dev/null; then
			wait "$listener"
			exit "$status"
		fi
		[ "$status" -eq 143 ] || [ "$status" -eq 130 ] && exit "$status"
		echo "Exiting with unknown error code: $status"
		exit 0
		;;
	esac
done
