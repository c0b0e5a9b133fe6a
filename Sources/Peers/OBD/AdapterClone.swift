// Commands that clones of the ELM327 reject, or acknowledge without effect.
// Source: reports of owners and of driver authors.

extension ELM327Adapter {
  /// Whether the adapter answers the command with `?`.
  func rejects(_ command: String) -> Bool {
    func beginsWith(_ names: String...) -> Bool { names.contains { command.hasPrefix($0) } }
    return hasFault(.clone) && (command == "S0" || command == "H1" || beginsWith("CRA"))
      || hasFault(.noAdaptive) && beginsWith("AT")
      || hasFault(.noMasks) && (beginsWith("CF", "CM") && !beginsWith("CFC") || beginsWith("CRA") && command.contains("X"))
      || hasFault(.noFlowControl) && beginsWith("FC", "CFC")
      || hasFault(.noLong) && beginsWith("AL")
      || hasFault(.noMemory) && (command == "M0" || command == "M1")
      || hasFault(.fixedMonitor) && beginsWith("CSM")
  }

  /// Whether the adapter acknowledges the command without effect.
  func ignores(_ command: String) -> Bool {
    hasFault(.ignoresHeaders) && command == "H1"
      || hasFault(.ignoresSpaces) && command == "S0"
      || hasFault(.ignoresFilter) && ["CRA", "CF0", "CF1", "CF7", "CM"].contains { command.hasPrefix($0) }
      || hasFault(.ignoresProtocol) && (command.hasPrefix("SP") || command.hasPrefix("TP"))
      || hasFault(.ignoresTiming) && (command.hasPrefix("ST") || command.hasPrefix("AT"))
  }
}
