// The AT commands of the simulated adapter that do more than set something. It never asks the car for anything but its voltage.
// Facts: the command summary of the ELM327 v1.5 family.

import Protocols

extension ELM327Adapter {
  private var banner: String { hasFault(.falseVersion) ? "ELM327 v2.1" : "ELM327 v1.5" }

  /// Runs the command behind AT.
  mutating func attention(_ command: String, at start: Instant) {
    switch command {
    case "Z": restart(at: start + timing.reset)
    case "WS": restart(at: start + timing.warmStart)
    case "I": say(banner, at: start)
    case "@1": say("OBDII to RS232 Interpreter", at: start)
    case "@2": say(name ?? "?", at: start)
    case "RV": say(voltage(at: start), at: start)
    case "DP": say(settings.busProtocol.name, at: start)
    case "DPN": say(settings.busProtocol.digits, at: start)
    case "LP": fallAsleep(at: start)
    case "PC", "BI":
      settings.busProtocol.isOpen = command == "BI"
      say("OK", at: start)
    case "D":
      restoreDefaults()
      say("OK", at: start)
    case "TPA0" where hasFault(.lockup): phase = .deaf(until: .max)
    default: set(command, at: start + timing.setting)
    }
  }

  private mutating func set(_ command: String, at instant: Instant) {
    let understood = !refuses(command) && (ignores(command) || settings.apply(command))
    if understood, settings.memory, command.hasPrefix("SP") { storedProtocol = settings.busProtocol }
    if hasFault(.echo) { settings.echo = true }
    say(understood ? "OK" : "?", at: instant)
  }

  /// Tenths of a volt: `14.4V`.
  private func voltage(at now: Instant) -> String {
    let tenths = (car.supply(at: now) + 50) / 100
    return "\(tenths / 10).\(tenths % 10)V"
  }

  /// Soon, with a warning before.
  mutating func fallAsleep(at start: Instant) {
    say("OK", at: start)
    let warning = start + timing.lowPower
    lowPower = LowPower(warning: warning, asleep: warning + timing.lowPowerWarning)
  }

  /// While it starts it hears nothing.
  mutating func restart(at end: Instant) {
    restoreDefaults()
    lowPower = nil
    sendQueue.add((hasFault(.noisyBanner) ? [0xFC] : []) + settings.endOfLine + settings.endOfLine, at: end)
    say(banner, at: end)
    phase = .deaf(until: sendQueue.end)
  }
}
