// The AT commands of the simulated adapter that do more than change a setting.
// Source: the command summary of the ELM327 v1.5 family.

import Protocols

extension ELM327Adapter {
  private var banner: String { hasFault(.falseVersion) ? "ELM327 v2.1" : "ELM327 v1.5" }

  /// Runs an AT command, given without the prefix `AT`.
  mutating func runATCommand(_ command: String, at start: Instant) {
    switch command {
    case "Z": restart(at: start + timing.reset)
    case "WS": restart(at: start + timing.warmStart)
    case "I": respond(banner, at: start)
    case "@1": respond("OBDII to RS232 Interpreter", at: start)
    case "@2": respond(name ?? "?", at: start)
    case "RV": respond(voltage(at: start), at: start)
    case "DP": respond(settings.obdProtocol.name, at: start)
    case "DPN": respond(settings.obdProtocol.digits, at: start)
    case "LP": enterSleep(at: start)
    case "PC", "BI":
      settings.obdProtocol.isOpen = command == "BI"
      respond("OK", at: start)
    case "D":
      restoreDefaults()
      respond("OK", at: start)
    case "TPA0" where hasFault(.lockup): phase = .unresponsive(until: .max)
    default: set(command, at: start + timing.setting)
    }
  }

  private mutating func set(_ command: String, at instant: Instant) {
    let isAccepted = !rejects(command) && (ignores(command) || settings.apply(command))
    if isAccepted, settings.memory, command.hasPrefix("SP") { storedProtocol = settings.obdProtocol }
    if hasFault(.echo) { settings.echo = true }
    respond(isAccepted ? "OK" : "?", at: instant)
  }

  /// The supply voltage in tenths of a volt, `14.4V`.
  private func voltage(at now: Instant) -> String {
    let tenths = (car.supplyMillivolts(at: now) + 50) / 100
    return "\(tenths / 10).\(tenths % 10)V"
  }

  /// Schedules the low-power warning and, after it, the low-power mode.
  mutating func enterSleep(at start: Instant) {
    respond("OK", at: start)
    let warning = start + timing.lowPower
    lowPower = LowPower(warning: warning, asleepFrom: warning + timing.lowPowerWarning)
  }

  /// Restarts the adapter. It ignores input until it has printed its banner, at `end`.
  mutating func restart(at end: Instant) {
    restoreDefaults()
    lowPower = nil
    sendQueue.add((hasFault(.noisyBanner) ? [0xFC] : []) + settings.endOfLine + settings.endOfLine, at: end)
    respond(banner, at: end)
    phase = .unresponsive(until: sendQueue.transmissionEnd)
  }
}
