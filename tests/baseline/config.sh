#!/bin/bash
# Stand-in for the agent's config.sh: the same calls in the same order, made by a Python client. It lacks only the one to two
# seconds that .NET takes to start, which is to the advantage of the entrypoint that uses it.
exec /usr/bin/python3 "$(dirname "$0")/configure.py" "$@"
