// Profiles of vehicles on a CAN bus: the signals of a model, which `vehicle` selects. The tables are in the files in Vehicles; each must be
// listed in `all`.

package struct CANProfile: Sendable {
  /// The name in the configuration, such as tesla-model-3.
  package let name: String
  /// The name of the model.
  package let title: String
  /// The bit rate of its bus in bit/s.
  package let bitRate: Int
  /// The signals, as sections of the configuration.
  package let sections: [Setup.Subsection]

  package static let all: [CANProfile] = [teslaModel3]

  init(_ name: String, _ title: String, bitRate: Int, sections: [Setup.Subsection]) {
    (self.name, self.title, self.bitRate, self.sections) = (name, title, bitRate, sections)
  }

  /// The profile with this name; nil for any other text.
  package init?(name: String) {
    guard let profile = Self.all.first(where: { $0.name == name }) else { return nil }
    self = profile
  }

  /// The signals of the profile, except those with a name in `own`, followed by `own`.
  func signals(with own: [CANSignal]) -> [CANSignal] {
    let names = Set(own.map(\.property.name))
    var problems: [OptionError] = []
    return sections.filter { !names.contains($0.name) }.compactMap { CANSignal($0, &problems) } + own
  }
}
