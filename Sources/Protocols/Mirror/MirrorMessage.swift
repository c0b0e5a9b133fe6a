// What the mirror may be told, as values that its firmware survives. The ESP32 keeps unknown tags for ever, restarts at a
// number that is none or a message that ends behind its colon, and cuts at the first '+'; what it hands on becomes a file name
// and a piece of SQL. So nothing else than these can be made. It must never be widened by a text of somebody's choice.
// Facts: ISM-Embedded's main.cpp and nano/, ISM-App's BLE.swift, HealthData.swift, WeatherData.swift.
//
//   Name: Ada     Bright: 50.0     Heart: 72.0     StepC: 4321.00     TempF: 68     Condi: Cloudy     Connected

/// One message to the mirror.
public struct MirrorMessage: Sendable, Equatable {
  /// What it is about, as the wire has it. There are no others that the ESP32 ever lets go of.
  public enum Tag: String, Sendable, CaseIterable {
    case connected = "Connected"
    case disconnected = "Disconnected"
    case name = "Name"
    case newName = "NewName"
    /// LED brightness in percent.
    case brightness = "Bright"
    /// Beats a minute.
    case heart = "Heart"
    /// Steps since midnight.
    case steps = "StepC"
    /// Active energy since midnight, in kcal.
    case energy = "CaloB"
    /// Distance since midnight, in miles.
    case distance = "DistW"
    /// Degrees Fahrenheit.
    case temperature = "TempF"
    case condition = "Condi"
    case uvIndex = "UVInd"
    /// Percent.
    case humidity = "Humid"

    /// It raises the mirror's data line: the display fetches and shows it, under the name that was told before.
    public var isData: Bool {
      switch self {
      case .connected, .disconnected, .name, .newName: false
      default: true
      }
    }
  }

  public let tag: Tag
  /// `Tag: value` or the bare word, in ASCII: what is encrypted, without the end mark. At most 63 bytes.
  public let text: [UInt8]

  public static let connected = MirrorMessage(word: .connected)
  public static let disconnected = MirrorMessage(word: .disconnected)

  private init(word: Tag) { (tag, text) = (word, Array(word.rawValue.utf8)) }

  private init(checked tag: Tag, _ value: String) {
    self.tag = tag
    text = Array(tag.rawValue.utf8) + [colon, space] + Array(value.utf8)
  }

  /// A name or a condition, or why the mirror must not be told this one.
  public init(_ tag: Tag, _ value: String) throws(ValueError) {
    let words: String? =
      switch tag {
      case .name, .newName: Self.refusal(name: value)
      case .condition: Self.refusal(condition: value)
      default: "\(tag.rawValue) takes no text"
      }
    if let words { throw ValueError(words) }
    self.init(checked: tag, value)
  }

  /// A number in the unit of its tag, or why the mirror must not be told this one.
  public init(_ tag: Tag, _ value: Double) throws(ValueError) {
    guard let form = tag.form else { throw ValueError("\(tag.rawValue) takes no number") }
    guard value.isFinite else { throw ValueError("that is not a number") }
    guard form.range.contains(value) else {
      // The number itself is nobody's business: this goes into the journal.
      throw ValueError("it is not between \(Value.text(form.range.lowerBound)) and \(Value.text(form.range.upperBound))")
    }
    self.init(checked: tag, form.text(value))
  }

  private static let longest = 31

  /// Why the mirror cannot bear this name, or nil where it can: it becomes a database key and the name of picture files.
  public static func refusal(name: String) -> String? {
    let bytes = name.utf8
    guard (1...longest).contains(bytes.count), bytes.allSatisfy({ isLetter($0) || isDigit($0) || $0 == space || $0 == 0x5F || $0 == 0x2D })
    else { return "a name has 1 to \(longest) letters (a to z, A to Z), digits, blanks, - and _: the mirror can keep no other" }
    if bytes.first == space || bytes.last == space { return "a name neither begins nor ends with a blank; leave it out" }
    return name.lowercased() == "default" ? "Default is an entry of the mirror's own; choose another name" : nil
  }

  /// Why the mirror cannot show this weather condition, or nil where it can.
  public static func refusal(condition: String) -> String? {
    let bytes = condition.utf8
    let isPlain = bytes.allSatisfy { (0x20..<0x7F).contains($0) && !forbidden.contains($0) }
    return (1...longest).contains(bytes.count) && isPlain
      ? nil : "a condition has 1 to \(longest) ASCII characters, none of ' \" / \\ + among them"
  }

  private static let forbidden = Array("'\"/\\+".utf8)
  private static func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) &- 0x61 < 26 }
}

extension MirrorMessage.Tag {
  /// How a number of this tag is written.
  struct Form {
    let range: ClosedRange<Double>
    /// Digits behind the point.
    let decimals: Int
    var rule = FloatingPointRoundingRule.toNearestOrAwayFromZero

    /// Always with a point, wherever the daemon runs.
    func text(_ value: Double) -> String {
      let scale = decimals == 0 ? 1 : decimals == 1 ? 10 : 100
      let number = Int((value * Double(scale)).rounded(rule))
      guard scale > 1 else { return String(number) }
      let rest = number % scale
      return "\(number / scale).\(scale == 100 && rest < 10 ? "0" : "")\(rest)"
    }
  }

  /// nil where the tag takes no number. Numbers that are written with decimals are never negative.
  var form: Form? {
    switch self {
    case .connected, .disconnected, .name, .newName, .condition: nil
    case .brightness: Form(range: 0...100, decimals: 1)
    case .heart: Form(range: 1...500, decimals: 1)
    case .steps: Form(range: 0...1_000_000, decimals: 2)
    case .energy: Form(range: 0...100_000, decimals: 2)
    case .distance: Form(range: 0...10_000, decimals: 2)
    case .temperature: Form(range: -150...200, decimals: 0, rule: .towardZero)
    case .uvIndex: Form(range: 0...50, decimals: 0)
    case .humidity: Form(range: 0...100, decimals: 0, rule: .towardZero)
    }
  }
}
