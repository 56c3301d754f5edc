# @kubernetes/client-node.
# shellcheck shell=bash disable=SC2034,SC2154
program=javascript/node_modules/@kubernetes/client-node
. "$parts/clients.sh"

# Modules are searched in the folder of the script.
run() {
  ln -s "$programs/javascript/node_modules" node_modules
  cp "$scripts/javascript/smoke.mjs" .
  client node smoke.mjs
}
