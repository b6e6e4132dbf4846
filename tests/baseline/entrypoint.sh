#!/bin/bash
# A runner container's entrypoint as such scripts are usually written, for comparison: it registers with the agent's own
# config.sh, hands over to run.sh, and means to deregister in a trap. What it gets wrong is the point; see the README.
set -euo pipefail
umask 002

if [ "$#" -gt 0 ]; then
	exec "$@"
fi

: "${RUNNER_TOKEN:?a registration token is needed}"
: "${RUNNER_URL:?the address of a repository or organisation is needed}"
name=${RUNNER_NAME:-$(hostname)}
labels=${RUNNER_LABELS:-self-hosted}
work=${RUNNER_WORKDIR:-_work}
token=$RUNNER_TOKEN
unset RUNNER_TOKEN

cd "$RUNNER_ROOT"

deregister() {
	echo "removing the registration"
	./config.sh remove --token "$token" 2>/dev/null || true
}
trap deregister EXIT INT TERM

./config.sh --url "$RUNNER_URL" --token "$token" --name "$name" --labels "$labels" --work "$work" \
	--ephemeral --replace --unattended --disableupdate

export RUNNER_MANUALLY_TRAP_SIG=1
exec ./run.sh
