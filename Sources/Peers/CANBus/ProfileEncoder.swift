// Encodes values as the messages of a vehicle, by the sections of its profile. The bits are written one by one, so that an error of the
// decoder does not cancel out.

import Protocols

struct ProfileEncoder: Sendable {
  /// The bits of a signal or of a multiplexer.
  private struct Place: Sendable {
    let start, length: Int
    let isLittleEndian: Bool

    /// Parses `START|LENGTH@ORDER` and a sign.
    init?(_ text: String) {
      let parts = text.split { "|@+- ".contains($0) }.compactMap { Int($0) }
      guard parts.count == 3 else { return nil }
      (start, length, isLittleEndian) = (parts[0], parts[1], parts[2] == 1)
    }

    func write(_ number: UInt64, to bytes: inout [UInt8]) {
      var bit = start
      for step in 0..<length {
        let index = isLittleEndian ? step : length - 1 - step
        if number >> UInt64(index) & 1 == 1 { bytes[bit / 8] |= 1 << UInt8(bit % 8) }
        bit = isLittleEndian ? bit + 1 : bit % 8 == 0 ? bit + 15 : bit - 1
      }
    }
  }

  private struct Signal: Sendable {
    let name: String
    let place: Place
    let factor, offset: Double
    let isSigned: Bool
    /// The numbers of strings and booleans.
    let numbers: [String: Int]

    func number(of value: Value) -> UInt64? {
      if let number = value.number, numbers.isEmpty || value.text.first?.isNumber == true || value.text.first == "-" {
        let raw = ((number - offset) / factor).rounded()
        let largest = Double(sign: .plus, exponent: isSigned ? place.length - 1 : place.length, significand: 1)
        return UInt64(bitPattern: Int64(min(max(raw, isSigned ? -largest : 0), largest - 1)))
      }
      return numbers[value.text].map { UInt64($0) }
    }
  }

  /// The signals of a message that its frames contain together.
  private struct Variant: Sendable {
    let multiplexers: [(place: Place, number: UInt64)]
    var signals: [Signal] = []
  }

  private struct Message: Sendable {
    let identifier: CANIdentifier
    let period: Nanoseconds
    var variants: [String: Variant] = [:]
  }

  /// Messages with a shorter cycle time are sent this often.
  private static let minPeriod: Nanoseconds = 50 * .millisecond
  private static let defaultPeriod: Nanoseconds = .second
  private let messages: [Message]

  init(_ profile: CANProfile) {
    var messages: [CANIdentifier: Message] = [:]
    for section in profile.sections {
      guard let identifier = section.options["can-id"].flatMap({ CANIdentifier($0.text) }), section.options["multiplier"] == nil,
        let bits = section.options["bits"]?.text, let place = Place(bits)
      else { continue }
      var numbers: [String: Int] = [:]
      var conditions: [String] = []
      if case .list(let entries)? = section.options["when"] { conditions = entries }
      if case .list(let entries)? = section.options["labels"] {
        for entry in entries {
          let parts = entry.split(separator: ":", maxSplits: 1)
          let text = String(parts[1].dropFirst())
          if let number = Int(parts[0]), numbers[text] == nil { numbers[text] = number }
        }
      }
      let signal = Signal(
        name: section.name, place: place, factor: section.options["factor"]?.number ?? 1, offset: section.options["offset"]?.number ?? 0,
        isSigned: bits.hasSuffix("-"), numbers: numbers)
      let period = section.options["cycle-time"]?.number.map { max(Nanoseconds($0) * .millisecond, Self.minPeriod) } ?? Self.defaultPeriod
      let multiplexers = conditions.compactMap { text -> (Place, UInt64)? in
        let parts = text.split(separator: ":")
        let number = parts[1].split { !$0.isNumber }.first.flatMap { UInt64($0) }
        guard let place = Place(String(parts[0])), let number else { return nil }
        return (place, number)
      }
      messages[identifier, default: Message(identifier: identifier, period: period)]
        .variants[conditions.joined(), default: Variant(multiplexers: multiplexers)].signals.append(signal)
    }
    self.messages = messages.values.sorted { $0.identifier.number < $1.identifier.number }
  }

  /// The frames from `start` on, for a length of time, both in nanoseconds. `values` returns the values at a time; signals without one are 0.
  func frames(from start: Nanoseconds, for length: Nanoseconds, _ values: (Nanoseconds) -> [String: Value]) -> [(
    time: Nanoseconds, frame: CANFrame
  )] {
    var frames: [(time: Nanoseconds, frame: CANFrame)] = []
    for time in stride(from: 0, to: length, by: Int(Self.minPeriod)) {
      let due = messages.filter { (start + time) % $0.period == 0 }
      guard !due.isEmpty else { continue }
      let current = values(start + time)
      for message in due {
        for (_, variant) in message.variants.sorted(by: { $0.key < $1.key }) {
          var bytes = [UInt8](repeating: 0, count: CANFrame.maxCount)
          for (place, number) in variant.multiplexers { place.write(number, to: &bytes) }
          for signal in variant.signals {
            if let number = current[signal.name].flatMap(signal.number) { signal.place.write(number, to: &bytes) }
          }
          // Messages of the same time follow each other.
          frames.append((time + Nanoseconds(frames.count % 64) * .microsecond, CANFrame(message.identifier, bytes)))
        }
      }
    }
    return frames.sorted { $0.time < $1.time }
  }
}
