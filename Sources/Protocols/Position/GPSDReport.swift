// Parses the lines of gpsd. They are untrusted: unknown classes are ignored, and a value of an unexpected type is absent. Versions differ:
// up to 3.18, `alt` is the altitude above mean sea level; later it is deprecated, and can be the height above the ellipsoid. Old versions
// report epx and epy instead of eph, the time as a number, and numbers that are not finite.
// Source: gpsd_json(5) of 3.9, 3.20 and 3.22; gpsd_json.c.

/// The contents of one line.
enum GPSDReport: Sendable, Equatable {
  case version(String)
  /// The paths of all receivers.
  case receivers([String])
  case receiver(String, isActive: Bool)
  case fix(GPSDFix)
  case sky(GPSDSky)
  case error(String)
  /// Any other class: WATCH, PPS, ATT, …
  case other

  static let maxTextLength = 128

  /// Parses a line; nil if it is not an object with a class.
  init?(_ line: [UInt8]) {
    guard let root = JSONNode(untrusted: line) ?? JSONNode(untrusted: Self.finite(line)), let name = root["class"]?.text else { return nil }
    switch name {
    case "VERSION": self = .version(Self.text(root["release"]) ?? "")
    case "DEVICES": self = .receivers((root["devices"]?.elements ?? []).compactMap { Self.text($0["path"]) })
    case "DEVICE":
      guard let path = Self.text(root["path"]) else { self = .other; return }
      self = .receiver(path, isActive: root["activated"]?.float != 0)
    case "TPV": self = .fix(GPSDFix(root))
    case "SKY": self = .sky(GPSDSky(root))
    case "ERROR": self = .error(Self.text(root["message"]) ?? "no message")
    default: self = .other
    }
  }

  /// A text of limited length without invisible characters; nil if it is empty.
  fileprivate static func text(_ node: JSONNode?) -> String? {
    node?.text.map { visible($0, limit: maxTextLength) }.flatMap { $0.isEmpty ? nil : $0 }
  }

  /// Replaces `nan`, `-inf` and the like, which are not JSON, by null.
  private static func finite(_ line: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    var rest = line[...]
    var isString = false
    while let byte = rest.first {
      let word: ArraySlice<UInt8> =
        isString ? [] : rest.prefix { $0 == UInt8(ascii: "-") || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0 | 0x20) }
      if word.isEmpty {
        let count = isString && byte == UInt8(ascii: "\\") ? 2 : 1
        if byte == UInt8(ascii: "\"") { isString.toggle() }
        result.append(contentsOf: rest.prefix(count))
        rest = rest.dropFirst(count)
      } else {
        let letters = String(decoding: word.drop { $0 == UInt8(ascii: "-") }.prefix(3).map { $0 | 0x20 }, as: UTF8.self)
        result.append(contentsOf: ["nan", "inf"].contains(letters) ? Array("null".utf8)[...] : word)
        rest = rest.dropFirst(word.count)
      }
    }
    return result
  }
}

/// The contents of a TPV line.
struct GPSDFix: Sendable, Equatable {
  enum Mode: Int, CaseIterable, Sendable {
    case none = 1
    case twoD, threeD

    var name: String {
      switch self {
      case .none: "none"
      case .twoD: "2d"
      case .threeD: "3d"
      }
    }
  }

  /// The path of the receiver; nil if gpsd does not report it.
  var receiver: String?
  var mode: Mode
  /// The time of the fix; nil if the receiver does not report it.
  var time: String?
  /// The numbers, in the units of the properties. Implausible numbers are absent.
  private var numbers: [PositionProperty: Double] = [:]

  /// Whether it has coordinates.
  var hasPosition: Bool { mode != .none && numbers[.latitude] != nil && numbers[.longitude] != nil }

  subscript(_ property: PositionProperty) -> Double? { numbers[property] }

  fileprivate init(_ root: JSONNode) {
    receiver = GPSDReport.text(root["device"])
    mode = (root["mode"]?.int).flatMap { Mode(rawValue: min($0, Mode.threeD.rawValue)) } ?? .none
    time = Self.time(root["time"])
    guard mode != .none else { return }
    set(.latitude, root["lat"]?.float, scale: 1e7)
    set(.longitude, root["lon"]?.float, scale: 1e7)
    set(.speed, root["speed"]?.float.map { $0 * 3.6 }, scale: 10)
    set(.track, root["track"]?.float, scale: 10)
    set(.horizontalAccuracy, root["eph"]?.float ?? Self.diagonal(root["epx"]?.float, root["epy"]?.float), scale: 10)
    guard mode == .threeD else { return }
    set(.altitude, root["altMSL"]?.float ?? (root["altHAE"] == nil ? root["alt"]?.float : nil), scale: 100)
    set(.verticalAccuracy, root["epv"]?.float, scale: 10)
  }

  private mutating func set(_ property: PositionProperty, _ number: Double?, scale: Double) {
    guard let number, property.range?.contains(number) == true else { return }
    numbers[property] = (number * scale).rounded() / scale
  }

  private static func diagonal(_ x: Double?, _ y: Double?) -> Double? {
    guard let x, let y else { return nil }
    return (x * x + y * y).squareRoot()
  }

  /// The time in ISO 8601; versions before 3.0 report seconds since the Unix epoch.
  private static func time(_ node: JSONNode?) -> String? {
    if let seconds = node?.float { return (0...4e9).contains(seconds) ? WallTime.isoTime(Int64(seconds * 1e6)) : nil }
    guard let text = node?.text, (10...35).contains(text.utf8.count),
      text.utf8.allSatisfy({ isDigit($0) || "-:.+TZ".utf8.contains($0) })
    else { return nil }
    return text
  }
}

/// The contents of a SKY line. Since 3.22 some of them have no satellites, only the dilution of precision.
struct GPSDSky: Sendable, Equatable {
  var receiver: String?
  var used: Int?
  var seen: Int?

  fileprivate init(_ root: JSONNode) {
    receiver = GPSDReport.text(root["device"])
    let satellites = root["satellites"]?.elements
    used = root["uSat"]?.int ?? satellites?.count { $0["used"]?.kind == .true }
    seen = root["nSat"]?.int ?? satellites?.count
    if let count = used, PositionProperty.satellitesUsed.range?.contains(Double(count)) != true { used = nil }
    if let count = seen, PositionProperty.satellitesSeen.range?.contains(Double(count)) != true { seen = nil }
  }
}
