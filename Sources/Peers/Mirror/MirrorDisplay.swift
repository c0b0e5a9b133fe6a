// Simulates the display computer: profiles by name, face enrolment for new names, brightness, and inputs that crash its program or corrupt
// its data.
// Source: ISM-Embedded's nano/main.py, nano/subsystems/database.py (SQL text, parsing of numbers) and nfr6.py (pictures, file names).

/// The display of a simulated mirror.
public struct MirrorDisplay: Sendable {
  /// The values by name and tag. The profile `Default` holds the brightness at power-on.
  public private(set) var profiles: [String: [String: String]] = ["Default": ["Bright": "75"]]
  /// Names with enrolled faces, in order.
  public private(set) var enrolled: [String] = []
  /// The name that was received last.
  public private(set) var user: String?
  /// The brightness that was received last.
  public private(set) var brightness: String?

  private static let textTags: Set<String> = ["Name", "Condi"]

  /// The result of reading all fields.
  struct Outcome {
    var messages: [String] = []
    var failure: Failure?
    var isTakingPictures = false
  }

  /// The effect of values that the program does not handle correctly, with a description.
  enum Failure {
    case crash(String)
    case corruptedData(String)

    var text: String {
      switch self {
      case .crash(let text): "crash: the display: \(text)"
      case .corruptedData(let text): "corrupted data: the display: \(text)"
      }
    }
  }

  /// Handles the values of all fields, by tag.
  mutating func handle(_ fields: [String: String]) -> Outcome {
    let name = fields["Name"] ?? ""
    if let failure = self.failure(with: name, fields) { return Outcome(failure: failure) }
    var outcome = Outcome()
    if profiles[name] == nil {
      outcome = Outcome(messages: ["unknown name \"\(name)\": the display takes 11 pictures"], isTakingPictures: true)
      enrolled.append(name)
    }
    user = name
    let values = fields.filter { $0.key != "Name" }
    profiles[name, default: [:]].merge(values) { $1 }
    if let value = values["Bright"] { brightness = value }
    let shown = values.filter { $0.key != "Temp" }.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
    if !shown.isEmpty { outcome.messages.append("the display shows \(name): \(shown)") }
    return outcome
  }

  /// The crash or the corruption that these values cause, or nil if they cause none.
  private func failure(with name: String, _ fields: [String: String]) -> Failure? {
    for (tag, value) in fields.sorted(by: { $0.key < $1.key }) {
      if Self.textTags.contains(tag) {
        if value.contains("'") { return .crash("' in \(tag) breaks the SQL statement") }
      } else if Double(value)?.isFinite != true {
        return .crash("\(tag) \"\(value)\" is not a number")
      }
    }
    if name.isEmpty { return .corruptedData("a value without a name creates a profile with an empty name") }
    if name.contains("/") || name.contains(".") { return .corruptedData("\"\(name)\" is not a valid file name for pictures") }
    return name == "Default" ? .corruptedData("the profile with the brightness at power-on is overwritten") : nil
  }
}
