//! Exit codes of all commands. `portico help exit-codes` prints the table.

/// The command did what it was asked to do.
pub(crate) const SUCCESS: u8 = 0;
/// A server, or a command that writes or starts something, failed.
pub(crate) const FAILED: u8 = 1;
/// A command that examines something found a problem, a difference, or a condition that is not met.
pub(crate) const FOUND: u8 = 1;
/// A command that examines something could not do so.
pub(crate) const NOT_EXAMINED: u8 = 2;
/// A command that only prints could not do so.
pub(crate) const NOT_PRINTED: u8 = 2;
/// The command line or a setting is invalid; nothing was started.
pub(crate) const USAGE: u8 = 2;
/// The database is not the one that was served last.
pub(crate) const DATABASE_REPLACED: u8 = 3;
/// The program of `portico run -- CMD` cannot be executed.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
/// The program of `portico run -- CMD` does not exist.
pub(crate) const NOT_FOUND: u8 = 127;
/// Added to the number of the signal that ended the program of `portico run -- CMD`.
pub(crate) const SIGNAL_BASE: u8 = 128;

/// A row of the table: code, commands, meaning.
type Row = (u8, &'static str, &'static str);

const SERVERS: &str = "run, server, facade";
const STORES: &str = "run, server";
const CLIENTS: &str = "get, apply, history, rollback, undelete, routes, tree";
const EXAMINING: &str = "explain, route try, watch, diff, crds check, config check, secrets rewrap, doctor";
const WORKING: &str = "backup, restore, migrate, testenv";
const PRINTING: &str = "completion, man, version, help";

const TABLE: [Row; 13] = [
    (SUCCESS, "all", "The command did what it was asked to do and found no problem."),
    (FAILED, SERVERS, "The server failed to start, or a part of it ended."),
    (FAILED, WORKING, "The command failed; data that is served is unchanged."),
    (FOUND, EXAMINING, "The command found a problem, a difference, or a condition that is not met."),
    (USAGE, "all", "The command line or a setting is invalid; nothing was started."),
    (NOT_EXAMINED, CLIENTS, "The request failed or was refused."),
    (
        NOT_EXAMINED,
        EXAMINING,
        "The command could not examine its subject, for example because no server answered.",
    ),
    (NOT_PRINTED, PRINTING, "The text could not be written."),
    (
        DATABASE_REPLACED,
        STORES,
        "The database is not the one that was served last: restore it, or put the former one back.",
    ),
    (NOT_EXECUTABLE, "run -- CMD", "CMD cannot be executed."),
    (NOT_FOUND, "run -- CMD", "CMD does not exist."),
    (
        SIGNAL_BASE,
        "run -- CMD",
        "128 and the number of a signal: the signal ended CMD, or the server before CMD started.",
    ),
    (SUCCESS, "run -- CMD", "Any other code is that of CMD."),
];

/// The table as text.
pub(crate) fn table() -> String {
    let mut text = String::from("CODE  COMMANDS\n");
    for (code, commands, meaning) in TABLE {
        text.push_str(&format!("{code:<4}  {commands}\n      {meaning}\n"));
    }
    text
}
