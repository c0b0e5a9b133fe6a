// The AT and ST commands of the simulated adapter that do more than set something, and the ones a poor clone refuses.
// It never asks the car for anything. Facts: the command summary of the ELM327 v1.5 family; STN identity as OBDLink gives it.

import Protocols

extension ELM327Adapter {
  private static let banner = "ELM327 v1.5"

  /// Runs the command behind AT.
  mutating func attention(_ command: String, at start: Instant) {
    switch command {
    case "Z": restart(at: start + timing.reset)
    case "WS": restart(at: start + timing.warmStart)
    case "I": say(ELM327Adapter.banner, at: start)
    case "@1": say("OBDII to RS232 Interpreter", at: start)
    case "@2": say(name ?? "?", at: start)
    case "RV": say("\(ElectricCar.auxiliaryVoltage / 10).\(ElectricCar.auxiliaryVoltage % 10)V", at: start)
    case "DP": say(settings.busProtocol.name, at: start)
    case "DPN": say(settings.busProtocol.digits, at: start)
    case "D":
      restoreDefaults()
      say("OK", at: start)
    default:
      let understood = !refuses(command) && settings.apply(command)
      if understood, settings.memory, command.hasPrefix("SP") { storedProtocol = settings.busProtocol }
      if suffers(.echo) { settings.echo = true }
      say(understood ? "OK" : "?", at: start)
    }
  }

  /// Runs the command behind ST.
  mutating func identify(_ command: String, at start: Instant) {
    guard personality == .stn, !suffers(.clone) else { return say("?", at: start) }
    switch command {
    case "I": say("STN1110 v4.2.0", at: start)
    case "DI": say("OBDLink r4.2", at: start)
    default: say("?", at: start)
    }
  }

  /// A poor clone's gaps.
  private func refuses(_ command: String) -> Bool {
    suffers(.clone) && (command == "S0" || command == "H1" || command.hasPrefix("CRA"))
  }

  /// While it starts it hears nothing.
  private mutating func restart(at end: Instant) {
    restoreDefaults()
    outbox.add(settings.endOfLine + settings.endOfLine, at: end)
    say(ELM327Adapter.banner, at: end)
    phase = .deaf(until: outbox.end)
  }
}
