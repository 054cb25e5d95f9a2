#!/usr/bin/env node
// Starts the binary `toolcrib` for this platform. The package of each platform is an optional dependency, so that npm
// downloads only the binary that this machine can run.
'use strict';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** Returns the name of the package with the binary for this platform. `scripts/release` makes these packages. */
function platformPackage() {
  const libc = process.platform === 'linux' ? '-gnu' : '';
  return `@toolcrib/cli-${process.platform}-${process.arch}${libc}`;
}

/** Returns the path of the binary, or undefined if the package is not installed. */
function binaryPath() {
  try {
    return require.resolve(`${platformPackage()}/bin/toolcrib`);
  } catch {
    return undefined;
  }
}

/** Returns whether this machine has glibc. It is slow, so only the error message uses it. */
function hasGlibc() {
  return process.report.getReport().header.glibcVersionRuntime !== undefined;
}

/** Returns what is wrong if there is no binary, and what to do. */
function missingBinary() {
  const supported = Object.keys(require('../package.json').optionalDependencies ?? {});
  const name = platformPackage();
  const other = 'build it instead: cargo install toolcrib';
  if (!supported.includes(name)) {
    return `there is no package of toolcrib for ${process.platform} on ${process.arch}\nhint: ${other}`;
  }
  if (process.platform === 'linux' && !hasGlibc()) {
    return `the package of toolcrib for Linux requires glibc, which this system does not have\nhint: ${other}`;
  }
  return (
    `the package \`${name}\`, which contains the program for ${process.platform} on ${process.arch}, is not installed\n` +
    'hint: install toolcrib again with optional dependencies: without `--omit=optional`, without `omit=optional` in ' +
    '.npmrc, and without node_modules or a package-lock.json from another platform'
  );
}

/** Returns the environment of the binary. `TOOLCRIB_LAUNCHER` says that this installation is in npx's cache, and may be
 * deleted. A value that was inherited from another installation is removed. */
function environment() {
  const { TOOLCRIB_LAUNCHER: _, ...inherited } = process.env;
  const isNpx = /[\\/]_npx[\\/]/.test(__dirname);
  return isNpx ? { ...inherited, TOOLCRIB_LAUNCHER: 'npx' } : inherited;
}

/** Runs the binary as a child process, forwards signals, and exits as the child does. */
function runAsChild(binary, args, env) {
  const child = require('node:child_process').spawn(binary, args, { stdio: 'inherit', env });
  for (const signal of SIGNALS) {
    process.on(signal, () => child.kill(signal));
  }
  child.on('error', (error) => fail(`\`${binary}\` cannot be started: ${error.message}\nhint: install toolcrib again`));
  child.on('exit', (code, signal) => {
    if (signal === null) {
      process.exit(code);
    }
    SIGNALS.forEach((name) => process.removeAllListeners(name));
    process.kill(process.pid, signal);
  });
}

function fail(message) {
  process.stderr.write(`error: ${message}\n`);
  process.exitCode = 1;
}

const binary = binaryPath();
const args = process.argv.slice(2);
if (binary === undefined) {
  fail(missingBinary());
} else if (typeof process.execve === 'function') {
  // Since Node 22.15, a process can replace itself. Then only one process runs, and it gets all signals.
  process.execve(binary, [binary, ...args], environment());
} else {
  runAsChild(binary, args, environment());
}
