//! Exit codes of all commands, which `portico help exit-codes` lists.

/// The command succeeded.
pub(crate) const SUCCESS: u8 = 0;
/// A server, or a command that writes or starts something, failed.
pub(crate) const FAILED: u8 = 1;
/// A command that examines something found a problem, a difference, or a condition that is not met.
pub(crate) const FOUND: u8 = 1;
/// A command that examines something could not complete the examination.
pub(crate) const NOT_EXAMINED: u8 = 2;
/// A command that only prints text could not print it.
pub(crate) const NOT_PRINTED: u8 = 2;
/// The command line or a setting is invalid; nothing was started.
pub(crate) const USAGE: u8 = 2;
/// The database is not the database that this server used last.
pub(crate) const DATABASE_REPLACED: u8 = 3;
/// The program of `portico run -- CMD` cannot be executed.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
/// The program of `portico run -- CMD` does not exist.
pub(crate) const NOT_FOUND: u8 = 127;
/// Offset of the exit code if a signal ended the program of `portico run -- CMD`: the number of the signal is added.
pub(crate) const SIGNAL_BASE: u8 = 128;

/// Row of the table of exit codes: code, commands, meaning.
type Row = (u8, &'static str, &'static str);

const SERVERS: &str = "run, server, facade";
const STORES: &str = "run, server";
const CLIENTS: &str = "get, apply, history, rollback, undelete, routes, tree";
const CHECKS: &str = "explain, route try, watch, diff, crds check, config check, secrets rewrap, doctor";
const DATA_COMMANDS: &str = "backup, restore, migrate, testenv";
const PRINTERS: &str = "completion, man, version, help";

const TABLE: [Row; 13] = [
    (SUCCESS, "all", "The command succeeded and found no problem."),
    (FAILED, SERVERS, "The server failed to start, or one of its parts failed."),
    (FAILED, DATA_COMMANDS, "The command failed; data that is served is unchanged."),
    (FOUND, CHECKS, "The command found a problem, a difference, or a condition that is not met."),
    (USAGE, "all", "The command line or a setting is invalid; nothing was started."),
    (NOT_EXAMINED, CLIENTS, "The request failed or was refused."),
    (
        NOT_EXAMINED,
        CHECKS,
        "The command could not examine its subject, for example because no server answered.",
    ),
    (NOT_PRINTED, PRINTERS, "The text could not be written."),
    (
        DATABASE_REPLACED,
        STORES,
        "The database is not the database that this server used last: run `portico restore`, or put the former database back.",
    ),
    (NOT_EXECUTABLE, "run -- CMD", "CMD cannot be executed."),
    (NOT_FOUND, "run -- CMD", "CMD does not exist."),
    (
        SIGNAL_BASE,
        "run -- CMD",
        "128 plus the number of the signal that ended CMD, or that ended the server before CMD started.",
    ),
    (SUCCESS, "run -- CMD", "Any other code is the exit code of CMD."),
];

/// Returns the table of exit codes as text.
pub(crate) fn table() -> String {
    let mut text = String::from("CODE  COMMANDS\n");
    for (code, commands, meaning) in TABLE {
        text.push_str(&format!("{code:<4}  {commands}\n      {meaning}\n"));
    }
    text
}
