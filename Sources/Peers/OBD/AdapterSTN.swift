// The ST commands of an OBDLink: identity, requests in one line (STPX), timeouts in milliseconds, sleep.
// Sources: STN1100 family reference manual; for STPX, commands that existing programs send, for example STPX H:7E4, D:220101, R:1, T:200,
// in which R counts whole messages.

import Protocols

extension ELM327Adapter {
  /// Runs an ST command, given without the prefix `ST`.
  mutating func runSTCommand(_ command: String, at now: Instant, from start: Instant) {
    guard personality == .stn, !hasFault(.clone) else { return respond("?", at: start) }
    func argument(of name: String) -> Substring? { command.hasPrefix(name) ? command.dropFirst(name.count) : nil }
    switch command {
    case "I": return respond("STN1110 v4.2.0", at: start)
    case "DI": return respond("OBDLink r4.2", at: start)
    case "MFR": return respond("ScanTool.net LLC", at: start)
    case "SLCS":
      for text in ["CTRL MODE: ELM327", "UART SLEEP: \(sleepsWhenIdle ? "ON" : "OFF"), 1200 s", "UART WAKE: ON, 0-30000 us"] {
        sendQueue.add(settings.line(text), at: start)
      }
      return respond("PWR_CTRL: LOW POWER = LOW", at: start)
    case "SLEEP": return enterSleep(at: start)
    default: break
    }
    if let text = argument(of: "PX") {
      if hasFault(.ignoresSTPX) { return }
      guard let request = OBDRequest(stpx: text) else { return respond("?", at: start) }
      return send(request, at: now, from: start)
    }
    if let text = argument(of: "PTO"), let time = Int64(text), (1...65_535).contains(time) {
      settings.exactTimeout = time * .millisecond
      return respond("OK", at: start + timing.setting)
    }
    if let text = argument(of: "SLU"), let value = ELM327Adapter.sleepOptions[String(text)] {
      sleepsWhenIdle = value
      return respond("OK", at: start + timing.setting)
    }
    respond("?", at: start)
  }

  /// STSLU: whether the adapter sleeps when idle, by argument. The second value (wake on input) has no effect.
  private static let sleepOptions = ["ON,ON": true, "ON,OFF": true, "OFF,ON": false, "OFF,OFF": false]
}

extension OBDRequest {
  /// Parses the arguments of STPX, `H:7E4,D:220101,R:1,T:200`. Only D is required.
  init?(stpx text: Substring) {
    self.init(data: [])
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      let value = part.dropFirst(2)
      switch part.prefix(2) {
      case "H:":
        guard let address = AdapterSettings.address(value) else { return nil }
        header = (address, value.count == 8)
      case "D:":
        guard let bytes = HexDigits.bytes(value.utf8) else { return nil }
        data = bytes
      case "R:":
        guard let count = Int(value), (0...255).contains(count) else { return nil }
        messageLimit = count == 0 ? nil : count
      case "T:":
        guard let time = Int64(value), (1...65_535).contains(time) else { return nil }
        timeout = time * .millisecond
      default: return nil
      }
    }
    if data.isEmpty { return nil }
  }
}
