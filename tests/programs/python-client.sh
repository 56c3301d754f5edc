# The Python client.
# shellcheck shell=bash disable=SC2034,SC2154
program=python-client
. "$parts/clients.sh"

run() { client "$programs/python/bin/python" -B "$scripts/python/smoke.py"; }
