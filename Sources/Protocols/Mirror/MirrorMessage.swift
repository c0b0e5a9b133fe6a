// What the mirror may be told, as values that its firmware survives. The ESP32 keeps unknown tags for ever, restarts at a
// number that is none or a message that ends behind its colon, and cuts at the first '+'; what it hands on becomes a file name
// and a piece of SQL, and each of its bytes a character of Latin-1. So nothing else than these can be made. It must never be widened by a text of somebody's choice.
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
  /// `Tag: value` or the bare word, in Latin-1: what is encrypted, without the end mark. At most 63 bytes.
  public let text: [UInt8]

  public static let connected = MirrorMessage(word: .connected)
  public static let disconnected = MirrorMessage(word: .disconnected)

  public static let noEnergy = MirrorMessage(checked: .energy, "0.0")
  public static let noSteps = MirrorMessage(checked: .steps, "0")
  public static let noDistance = MirrorMessage(checked: .distance, "0")
  public static let noCondition = MirrorMessage(checked: .condition, "n/a")
  public static let noUVIndex = MirrorMessage(checked: .uvIndex, "0")

  private init(word: Tag) { (tag, text) = (word, Array(word.rawValue.utf8)) }

  private init(checked tag: Tag, _ value: String) {
    self.tag = tag
    text = Array(tag.rawValue.utf8) + [colon, space] + value.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
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

  /// Why the mirror cannot bear this name, or nil where it can: it becomes a key in SQL and the name of picture files, whose part
  /// before the first point says whose face it is.
  public static func refusal(name: String) -> String? {
    if let words = refusal(of: "a name", name, without: "+ ' / .") { return words }
    if name.utf8.allSatisfy({ $0 == space }) { return "a name of blanks cannot be seen; write one" }
    return name == "Default" ? "Default is an entry of the mirror's own; choose another name" : nil
  }

  /// Why the mirror cannot show this weather condition, or nil where it can.
  public static func refusal(condition: String) -> String? { refusal(of: "a condition", condition, without: "+ '") }

  /// The display takes each byte for a character of Latin-1, and drops 0xFF.
  private static func refusal(of what: String, _ text: String, without forbidden: String) -> String? {
    let scalars = text.unicodeScalars
    guard (1...longest).contains(scalars.count) else { return "\(what) has 1 to \(longest) characters; write a shorter one" }
    guard scalars.allSatisfy({ (0x20...0x7E).contains($0.value) || (0xA0...0xFE).contains($0.value) }) else {
      return "\(what) has letters, digits and signs of Latin-1 only, without ÿ: the mirror's display knows no others"
    }
    let breaks = forbidden.utf8.contains { $0 != space && text.utf8.contains($0) }
    return breaks ? "\(what) has none of \(forbidden) in it: the mirror's program breaks at them" : nil
  }
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
