// A property beside the way it is read from an answer: what every table of this folder is made of, whoever wrote it: the battery
// pages, the emission standard's parameters, an owner's own signals. Offsets count from the first byte behind the echoed
// identifier. What is not there is absent with a reason, never 0.

/// Why a property is absent although the vehicle answers.
enum Absence: UInt8, Sendable {
  case none, notReported, notAvailable, implausible, undefined, outOfRange, unscaled

  var words: String {
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

/// What reading a row comes to.
enum Decoded: Sendable, Equatable {
  case value(Value)
  case absent(Absence)
}

/// One property that an answer holds.
struct DataRow: Sendable {
  /// Name, type, unit, range and help; how long it stays fresh follows from how often it is asked for.
  var property: Property
  /// Reads the data behind the echoed identifier; never more of it than is there.
  var read: @Sendable (UnsafeBufferPointer<UInt8>) -> Decoded
  /// The same by the scale of the controller, where that can be another than the standard's, which is `read`.
  var scaled: Scaled?

  typealias Scaled = (quantity: ScaledQuantity, read: @Sendable (UnsafeBufferPointer<UInt8>, _ highest: UInt8) -> Decoded)

  init(_ property: Property, _ read: @escaping @Sendable (UnsafeBufferPointer<UInt8>) -> Decoded) {
    (self.property, self.read) = (property, read)
  }
}
