// A property with its decoder, the element of all tables: data records, SAE J1979 PIDs, custom signals. Offsets count from the first byte
// after the echoed identifier. Missing data is absent with a reason, never 0.

/// Why a property is absent although the vehicle answers.
enum Absence: UInt8, Sendable {
  case none, notReported, notAvailable, implausible, undefined, outOfRange, unscaled

  var message: String {
    switch self {
    case .none: ""
    case .notReported: "not reported by this car"
    case .notAvailable: "not available now"
    case .implausible: "implausible"
    case .undefined: "the formula has no result for this response"
    case .outOfRange: "outside the configured range"
    case .unscaled: "the ECU has not reported the scaling of this value yet (PIDs 4F and 50)"
    }
  }
}

/// The result of decoding a row.
enum Decoded: Sendable, Equatable {
  case value(Value)
  case absent(Absence)
}

/// One property of a response.
struct DataRow: Sendable {
  /// Name, type, unit, range and help; the freshness follows from the poll period.
  let property: Property
  /// Decodes the data after the echoed identifier; never reads beyond it.
  let read: @Sendable (UnsafeBufferPointer<UInt8>) -> Decoded
  /// The decoder with ECU-specific scaling, where `read` uses the standard one.
  let scaled: Scaled?

  typealias Scaled = (quantity: ScaledQuantity, read: @Sendable (UnsafeBufferPointer<UInt8>, _ highest: UInt8) -> Decoded)

  init(_ property: Property, scaled: Scaled? = nil, _ read: @escaping @Sendable (UnsafeBufferPointer<UInt8>) -> Decoded) {
    (self.property, self.read, self.scaled) = (property, read, scaled)
  }
}
