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
  private var read: [String: String] = [:]

  private static let texts: Set<String> = ["Name", "Condi"]

  mutating func fetched(_ tag: String, _ value: String) {
    if !value.isEmpty { read[tag] = value }
  }

  /// All fields are read: what is to be seen now, and what breaks the program.
  mutating func finish() -> (words: [String], crash: String?) {
    defer { read = [:] }
    let name = read["Name"] ?? ""
    if let words = trouble(with: name) { return ([], words) }
    var words: [String] = []
    if profiles[name] == nil {
      words.append("the display does not know \"\(name)\", and takes 11 pictures")
      enrolled.append(name)
    }
    user = name
    let values = read.filter { $0.key != "Name" }
    profiles[name, default: [:]].merge(values) { $1 }
    if let value = values["Bright"] { light = value }
    let shown = values.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
    return (words + ["the display shows \(name): \(shown.isEmpty ? "nothing new" : shown)"], nil)
  }

  private func trouble(with name: String) -> String? {
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
