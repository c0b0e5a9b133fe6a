// The computer behind the glass, as far as the central's words reach it: a profile for each name, faces that are learned for a
// name it does not know, the light, and the statements and numbers that break its program. It shows the one who was named last.
// Facts: ISM-Embedded's nano/main.py, nano/subsystems/database.py (text in SQL, floats) and nfr6.py (pictures, file names).

/// The display of a simulated mirror.
public struct MirrorDisplay: Sendable {
  /// What is known of each name, by tag. `Default` holds the light at power-on.
  public private(set) var profiles: [String: [String: String]] = ["Default": ["Bright": "75"]]
  /// Names whose faces were learned, in that order.
  public private(set) var enrolled: [String] = []
  /// Who was named last.
  public private(set) var user: String?
  /// The brightness as it was told last.
  public private(set) var light: String?

  private static let texts: Set<String> = ["Name", "Condi"]

  /// What comes of a reading.
  struct Outcome {
    var words: [String] = []
    /// What breaks the program.
    var crash: String?
    var isTakingPictures = false
  }

  /// All fields are read: what is to be seen now, and what breaks the program.
  mutating func take(_ read: [String: String]) -> Outcome {
    let name = read["Name"] ?? ""
    if let words = problem(with: name, read) { return Outcome(crash: words) }
    var outcome = Outcome()
    if profiles[name] == nil {
      outcome = Outcome(words: ["the display does not know \"\(name)\", and takes 11 pictures"], isTakingPictures: true)
      enrolled.append(name)
    }
    user = name
    let values = read.filter { $0.key != "Name" }
    profiles[name, default: [:]].merge(values) { $1 }
    if let value = values["Bright"] { light = value }
    let shown = values.filter { $0.key != "Temp" }.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
    if !shown.isEmpty { outcome.words.append("the display shows \(name): \(shown)") }
    return outcome
  }

  private func problem(with name: String, _ read: [String: String]) -> String? {
    for (tag, value) in read.sorted(by: { $0.key < $1.key }) {
      if Self.texts.contains(tag) {
        if value.contains("'") { return "the ' in \(tag) ends its SQL statement" }
      } else if Double(value)?.isFinite != true {
        return "\(tag) \"\(value)\" is no number"
      }
    }
    if name.isEmpty { return "a value without a name goes to a profile of nobody" }
    if name.contains("/") || name.contains(".") { return "\"\(name)\" is no file name for pictures" }
    return name == "Default" ? "the entry for the light at power-on is overwritten" : nil
  }
}
