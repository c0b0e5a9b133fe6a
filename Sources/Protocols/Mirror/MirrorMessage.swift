// The messages that the mirror's firmware can handle. The ESP32 leaks memory on unknown tags, restarts on an invalid number or a message
// that ends with its colon, and truncates at the first '+'. The display uses names as file names and in SQL statements, and reads bytes as
// Latin-1. So these types allow only messages that the firmware can handle, and a message with free text must never be added.
// Source: ISM-Embedded's main.cpp and nano/, ISM-App's BLE.swift, HealthData.swift, WeatherData.swift.
//
//   Name: Ada     Bright: 50.0     Heart: 72.0     StepC: 4321.00     TempF: 68     Condi: Cloudy     Connected

/// One message to the mirror.
public struct MirrorMessage: Sendable, Equatable {
  /// The tag on the wire.
  public enum Tag: String, Sendable, CaseIterable {
    case connected = "Connected"
    case disconnected = "Disconnected"
    case name = "Name"
    case newName = "NewName"
    /// LED brightness in percent.
    case brightness = "Bright"
    /// Heart rate in bpm.
    case heart = "Heart"
    /// Steps since midnight.
    case steps = "StepC"
    /// Active energy since midnight, in kcal.
    case energy = "CaloB"
    /// Distance since midnight, in miles.
    case distance = "DistW"
    /// Temperature in °F.
    case temperature = "TempF"
    case condition = "Condi"
    case uvIndex = "UVInd"
    /// Relative humidity in percent.
    case humidity = "Humid"

    /// Whether the message is a value. The ESP32 signals a value to the display, which shows it under the last name sent.
    public var isData: Bool {
      switch self {
      case .connected, .disconnected, .name, .newName: false
      default: true
      }
    }
  }

  public let tag: Tag
  /// The text before encryption, without the terminator: `Tag: value` or the bare tag, in Latin-1, at most 63 bytes.
  public let text: [UInt8]

  public static let connected = MirrorMessage(bare: .connected)
  public static let disconnected = MirrorMessage(bare: .disconnected)

  public static let noEnergy = MirrorMessage(checked: .energy, "0.0")
  public static let noSteps = MirrorMessage(checked: .steps, "0")
  public static let noDistance = MirrorMessage(checked: .distance, "0")
  public static let noCondition = MirrorMessage(checked: .condition, "n/a")
  public static let noUVIndex = MirrorMessage(checked: .uvIndex, "0")

  private init(bare tag: Tag) { (self.tag, text) = (tag, Array(tag.rawValue.utf8)) }

  private init(checked tag: Tag, _ value: String) {
    self.tag = tag
    text = Array(tag.rawValue.utf8) + [colon, space] + value.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
  }

  /// Creates a message with a name or a weather condition; throws if the mirror cannot handle it.
  public init(_ tag: Tag, _ value: String) throws(ValueError) {
    let message: String? =
      switch tag {
      case .name, .newName: Self.refusal(name: value)
      case .condition: Self.refusal(condition: value)
      default: "\(tag.rawValue) is not a string"
      }
    if let message { throw ValueError(message) }
    self.init(checked: tag, value)
  }

  /// Creates a message with a number in the unit of its tag; throws if the mirror cannot handle it.
  public init(_ tag: Tag, _ value: Double) throws(ValueError) {
    guard let format = tag.numberFormat else { throw ValueError("\(tag.rawValue) is not a number") }
    guard value.isFinite else { throw ValueError("not a number") }
    guard format.range.contains(value) else {
      // The message is logged, so it must not contain the number.
      throw ValueError("out of range: \(Value.text(format.range.lowerBound)) to \(Value.text(format.range.upperBound))")
    }
    self.init(checked: tag, format.text(value))
  }

  private static let maxLength = 31

  /// Why the mirror cannot handle this name; nil if it can. The name becomes a key in SQL statements, and part of the names of picture
  /// files, in which the part before the first dot identifies the face.
  public static func refusal(name: String) -> String? {
    if let message = refusal(of: "a name", name, without: "+ ' / .") { return message }
    if name.utf8.allSatisfy({ $0 == space }) { return "a name must not be blank" }
    return name == "Default" ? "the name Default is reserved by the mirror; choose another name" : nil
  }

  /// Why the mirror cannot show this weather condition; nil if it can.
  public static func refusal(condition: String) -> String? { refusal(of: "a condition", condition, without: "+ '") }

  /// The display interprets each byte as Latin-1, and drops 0xFF.
  private static func refusal(of what: String, _ text: String, without forbidden: String) -> String? {
    let scalars = text.unicodeScalars
    guard (1...maxLength).contains(scalars.count) else { return "\(what) must have 1 to \(maxLength) characters" }
    guard scalars.allSatisfy({ (0x20...0x7E).contains($0.value) || (0xA0...0xFE).contains($0.value) }) else {
      return "\(what) must consist of Latin-1 characters except ÿ: the mirror's display has no others"
    }
    let isForbidden = forbidden.utf8.contains { $0 != space && text.utf8.contains($0) }
    return isForbidden ? "\(what) must not contain any of \(forbidden): the mirror's firmware cannot handle them" : nil
  }
}

extension MirrorMessage.Tag {
  /// The format of the numbers of a tag.
  struct NumberFormat {
    let range: ClosedRange<Double>
    /// The number of decimals.
    let decimals: Int
    var rounding = FloatingPointRoundingRule.toNearestOrAwayFromZero

    /// The number as text, with a decimal point in every locale.
    func text(_ value: Double) -> String {
      let scale = decimals == 0 ? 1 : decimals == 1 ? 10 : 100
      let number = Int((value * Double(scale)).rounded(rounding))
      guard scale > 1 else { return String(number) }
      let rest = number % scale
      return "\(number / scale).\(scale == 100 && rest < 10 ? "0" : "")\(rest)"
    }
  }

  /// The format of the tag's numbers; nil if the tag has no number. Numbers with decimals are never negative.
  var numberFormat: NumberFormat? {
    switch self {
    case .connected, .disconnected, .name, .newName, .condition: nil
    case .brightness: NumberFormat(range: 0...100, decimals: 1)
    case .heart: NumberFormat(range: 1...500, decimals: 1)
    case .steps: NumberFormat(range: 0...1_000_000, decimals: 2)
    case .energy: NumberFormat(range: 0...100_000, decimals: 2)
    case .distance: NumberFormat(range: 0...10_000, decimals: 2)
    case .temperature: NumberFormat(range: -150...200, decimals: 0, rounding: .towardZero)
    case .uvIndex: NumberFormat(range: 0...50, decimals: 0)
    case .humidity: NumberFormat(range: 0...100, decimals: 0, rounding: .towardZero)
    }
  }
}
