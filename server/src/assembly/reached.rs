//! How hooks wait.

use portico_kit::hooks::HookContext;
use portico_kit::lifecycle::Signal;

/// Waits for a signal, unless the process ends first.
pub(super) async fn reached(cx: &HookContext, signal: &Signal) -> Result<(), String> {
    cx.stop.run_until_cancelled(signal.signaled()).await;
    Ok(())
}
