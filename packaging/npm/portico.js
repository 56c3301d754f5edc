#!/usr/bin/env node
// Starts the program from the package for this platform and exits with its code or signal.
"use strict";
const { spawn } = require("node:child_process");
const name = `portico-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/portico`);
} catch {
  console.error(`portico: the package ${name} is not installed; it is an optional dependency and exists for Linux only`);
  process.exit(1);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`portico: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.removeAllListeners(name);
  if (signal) process.kill(process.pid, signal);
  else process.exit(code);
});
