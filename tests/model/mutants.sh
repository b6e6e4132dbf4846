#!/bin/bash
# Shows that the model can fail: breaks the table in ways that a person might, one at a time, and wants each found.
#   mutants.sh CC FOLDER      builds into FOLDER
set -u
cc=$1 out=$2
here=$(cd "$(dirname "$0")/../.." && pwd)
missed=0 n=0

mutant() { # what, sed expression
	local what=$1 edit=$2 dir
	n=$((n + 1))
	dir=$out/mutant$n
	mkdir -p "$dir/init"
	sed -E "$edit" "$here/init/life.def" >"$dir/init/life.def"
	if cmp -s "$dir/init/life.def" "$here/init/life.def"; then
		echo "mutants: \"$what\" changes nothing: it no longer fits the table"
		missed=$((missed + 1))
		return
	fi
	# shellcheck disable=SC2086
	if ! $cc -std=c11 -D_GNU_SOURCE -w -I"$dir" -I"$here" -o "$dir/model" "$here/tests/model/model.c" "$here/init/life.c"; then
		echo "mutants: \"$what\" does not compile"
		missed=$((missed + 1))
	elif "$dir/model" >"$dir/log"; then
		echo "mutants: NOT FOUND: $what"
		missed=$((missed + 1))
	fi
}

in_state() { # STATE, from, to: an edit within one state's rows
	echo "/^STATE\\($1\\)/,/^END/ s/$2/$3/"
}

mutant "an unsettled add is taken for refused" "$(in_state ADDING 'ON\(UNSETTLED, DEREGISTERING, ACT_REMOVE\)' 'ON(UNSETTLED, SWEEPING, ACT_SWEEP)')"
mutant "a registrar that dies while adding ends the life" "$(in_state SETTLING 'ON\(LOST, DEREGISTERING, ACT_RESPAWN \| ACT_REMOVE\)' 'ON(LOST, SWEEPING, ACT_SWEEP)')"
mutant "files that cannot be written skip the removal" "$(in_state WRITING 'ON\(STEP_FAILED, DEREGISTERING, ACT_REMOVE\)' 'ON(STEP_FAILED, SWEEPING, ACT_SWEEP)')"
mutant "a failed removal ends like a good one" "$(in_state DEREGISTERING 'ON\(KEPT, GHOST, ACT_SWEEP\)' 'ON(KEPT, SWEEPING, ACT_SWEEP)')"
mutant "a ghost ends without its status" "$(in_state GHOST 'ON\(SWEPT, EXITED_GHOST, ACT_EXIT\)' 'ON(SWEPT, EXITED, ACT_EXIT)')"
mutant "a killed tree ends the life at once" "$(in_state KILLING 'ON\(TREE_GONE, DEREGISTERING, ACT_REMOVE\)' 'ON(TREE_GONE, SWEEPING, ACT_SWEEP)')"
mutant "a stop is forgotten while the agent is judged" "$(in_state JUDGING 'ON\(STOP, KILLING, ACT_DROP \| ACT_CLEAR\)' 'IGNORE(STOP)')"
mutant "after a stop a renewal registers again" "$(in_state RENEWING 'ON\(STOP, DEREGISTERING, ACT_REMOVE\)' 'ON(STOP, RENEWING, 0)')"
mutant "a drained agent is judged and started again" "$(in_state DRAINING 'ON\(AGENT_END, KILLING, ACT_CLEAR\)' 'ON(AGENT_END, JUDGING, ACT_LOOK)')"
mutant "idleness interrupts a job" "$(in_state BUSY 'IGNORE\(END\)' 'ON(END, CANCELLING, ACT_INT)')"
mutant "the removal is never ordered" "$(in_state KILLING 'ON\(TREE_LEFT, DEREGISTERING, ACT_REMOVE\)' 'ON(TREE_LEFT, DEREGISTERING, 0)')"
mutant "nobody arms the kill" "$(in_state LISTENING 'ON\(STOP, CANCELLING, ACT_INT\)' 'ON(STOP, CANCELLING, 0)')"
mutant "a pair is missing" "$(in_state LISTENING 'IGNORE\(SWEPT\)' '')"
mutant "the sweep never ends" "$(in_state SWEEPING 'ON\(SWEPT, EXITED, ACT_EXIT\)' 'IGNORE(SWEPT)')"

echo "mutants: $((n - missed)) of $n broken tables found"
[ "$missed" -eq 0 ]
