//! Waiting in post-start hooks.

use portico_kit::hooks::HookContext;
use portico_kit::lifecycle::Signal;

/// Waits for a signal, or until the process ends.
pub(super) async fn wait_for_signal(cx: &HookContext, signal: &Signal) -> Result<(), String> {
    cx.stop.run_until_cancelled(signal.signaled()).await;
    Ok(())
}
