// What poor copies of the chip make of commands: those they do not know, and those they acknowledge and ignore. It runs nothing.
// Facts: gaps that owners and drivers of such adapters name.

extension ELM327Adapter {
  /// What it answers with `?`.
  func refuses(_ command: String) -> Bool {
    func begins(_ names: String...) -> Bool { names.contains { command.hasPrefix($0) } }
    return suffers(.clone) && (command == "S0" || command == "H1" || begins("CRA"))
      || suffers(.noAdaptive) && begins("AT")
      || suffers(.noMasks) && (begins("CF", "CM") && !begins("CFC") || begins("CRA") && command.contains("X"))
      || suffers(.noFlowControl) && begins("FC", "CFC")
      || suffers(.noLong) && begins("AL")
      || suffers(.noMemory) && (command == "M0" || command == "M1")
      || suffers(.fixedMonitor) && begins("CSM")
  }

  /// What it acknowledges and does not do.
  func ignores(_ command: String) -> Bool {
    suffers(.hollowHeaders) && command == "H1"
      || suffers(.hollowSpaces) && command == "S0"
      || suffers(.hollowFilter) && ["CRA", "CF0", "CF1", "CF7", "CM"].contains { command.hasPrefix($0) }
      || suffers(.hollowProtocol) && (command.hasPrefix("SP") || command.hasPrefix("TP"))
      || suffers(.hollowTiming) && (command.hasPrefix("ST") || command.hasPrefix("AT"))
  }
}
