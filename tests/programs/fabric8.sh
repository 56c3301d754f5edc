# fabric8's kubernetes-client.
# shellcheck shell=bash disable=SC2034,SC2154
program=java.classpath
. "$parts/clients.sh"

run() { client java -cp "$(cat "$programs/java.classpath")" "$scripts/java/Fabric8.java"; }
