// The properties of a board that speaks ELComm: names, units, ranges, words. The order of the cases is the order of the
// schema. The wire has miles and mph; here stand kilometres. It must never show what the board marks as unknown as a value.
// Facts: ProjectTORQ.ino for the fields and their marks, ELMetrics.swift for the eleven characters of a name.

/// A property of a board that speaks ELComm; its raw value is its position in the schema.
enum ELCommSignal: Int, CaseIterable, Sendable {
  case speed, battery, batteryRaw, connected, distance, totalDistance
  case buzzer, name, mode, extra
  case dialect, cycleRate, roundTrip, missed, messages, badMessages, lastBadMessage

  /// What the board has to tell; the rest is our own.
  static let live: [ELCommSignal] = [.speed, .battery, .batteryRaw, .connected, .distance, .buzzer, .extra, .cycleRate, .roundTrip]

  static let maxNameLength = 11

  /// The schema's rows. What comes with every message stays fresh for three periods, at least two seconds.
  static func properties(period: Nanoseconds) -> [Property] {
    allCases.map { $0.property(max(3 &* period, 2 * .second)) }
  }

  private func property(_ freshFor: Nanoseconds) -> Property {
    let row = declaration
    return Property(
      row.name, row.type, unit: row.unit, range: row.range, access: self == .buzzer || self == .name ? .write : .read,
      remembered: self == .name, lifetime: Self.live.contains(self) ? .fresh(freshFor) : .retained, help: row.help)
  }

  private typealias Row = (name: String, type: ValueType, unit: String?, range: ClosedRange<Double>?, help: String)

  private var declaration: Row {
    switch self {
    case .speed: ("speed", .float, "km/h", -411...411, "Speed in whole miles an hour, converted; negative is backwards")
    case .battery: ("battery", .int, "%", 0...100, "Charge of the battery in the board's nine steps")
    case .batteryRaw: ("battery-raw", .int, "%", -999...999, "Charge as the board sends it, above 100 when freshly charged")
    case .connected: ("connected", .bool, nil, nil, "The VESC answers the board, and the board has not latched off")
    case .distance: ("distance", .float, "km", nil, "Distance since the board was reset; rolling back takes from it")
    case .totalDistance: ("total-distance", .float, "km", 0...1e12, "Distance since this device was set up, over all resets")
    case .buzzer: ("buzzer", .bool, nil, nil, "The buzzer is told to sound; it does while connected is true, and ends by itself")
    case .name: ("name", .string, nil, nil, "What the owner calls the board: at most \(Self.maxNameLength) characters, kept here")
    case .mode: ("mode", .string, nil, nil, "Speed mode; ELComm carries none")
    case .extra: ("extra", .list, nil, nil, "Fields behind the fourth, where the board sends any")
    case .dialect: ("dialect", .string, nil, nil, "Who begins: the host (as-built) or the board (documented)")
    case .cycleRate: ("cycle-rate", .float, "Hz", nil, "Messages a second, over the last 10 s")
    case .roundTrip: ("round-trip", .float, "ms", nil, "Median time from what is sent to the message that answers it")
    case .missed: ("missed", .int, nil, nil, "Messages that did not come in time")
    case .messages: ("messages", .int, nil, nil, "Messages since the daemon started")
    case .badMessages: ("bad-messages", .int, nil, nil, "Runs of bytes that were no message")
    case .lastBadMessage: ("last-bad-message", .string, nil, nil, "The last bytes that were no message")
    }
  }

  /// Kilometres for hundredths of a mile, to ten metres.
  static func kilometres(_ hundredths: Int) -> Double { (Double(hundredths) * 1.609344).rounded() / 100 }

  /// Kilometres an hour for miles an hour, to a tenth.
  static func kilometresPerHour(_ mph: Int) -> Double { (Double(mph) * 16.09344).rounded() / 10 }
}

extension ELCommMessage {
  /// 255 stands for a VESC that has never answered.
  private static let unknown = 255
  /// Below this the pack's voltage was not read yet.
  private static let unmeasured = -300

  /// What the board says of itself.
  enum Standing: Sendable, Equatable {
    case live, noVESC, latchedOff

    /// Why there are no values.
    var words: String? {
      switch self {
      case .live: nil
      case .noVESC: "the VESC has not answered the board yet"
      case .latchedOff: "the board has latched off after a voltage drop: reset it"
      }
    }
  }

  var standing: Standing {
    if speed == Self.unknown || battery == Self.unknown { return .noVESC }
    return connected ? .live : .latchedOff
  }

  /// The charge in 0 to 100 %, or why there is none.
  var charge: Reading.Content {
    if let words = standing.words { return .absent(words) }
    return battery < Self.unmeasured ? .absent("the board has not measured its battery yet") : .value(.int(min(max(battery, 0), 100)))
  }
}
