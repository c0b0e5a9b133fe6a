// The freeze frame of service 02 (SAE J1979): the values at the time when a trouble code was stored, as PIDs of service 01. Incomplete
// responses are rejected.

struct FreezeFrame: Sendable, Equatable {
  /// The value of one PID.
  struct Item: Sendable, Equatable {
    let name: String
    let unit: String?
    let value: Value
  }

  /// The number of the frame, usually 0.
  private(set) var frame: UInt8 = 0
  /// The trouble code that caused the frame to be stored: PID 02.
  private(set) var code: TroubleCode?
  private(set) var items: [Item] = []

  /// The request for one PID of a frame.
  static func request(_ number: UInt8, frame: UInt8 = 0) -> [UInt8] { [0x02, number, frame] }

  /// Adds the values of a response, with the scaling of its ECU. Returns an error message if the response is invalid.
  mutating func add(_ answer: ArraySlice<UInt8>, _ scales: Scales = Scales(), from source: UInt32? = nil) -> String? {
    guard answer.first == 0x42 else { return "not a service 02 response" }
    guard answer.count >= 3 else { return "response without a frame number" }
    var code = code
    var items = items
    let problem = StandardParameter.split(answer) { number, data in
      if number == 0x02 {
        let found = TroubleCode(answer[data.lowerBound], answer[data.lowerBound + 1])
        code = found.isPadding ? nil : found
      }
      guard number != 0x02, let parameter = StandardParameter.all[number] else { return }
      answer[data].withUnsafeBufferPointer { bytes in
        for row in parameter.rows {
          guard case .value(let value) = row.value(bytes, scales, from: source) else { continue }
          items.append(Item(name: row.property.name, unit: row.property.unit, value: value))
        }
      }
    }
    guard problem == nil else { return problem }
    (frame, self.code, self.items) = (answer[answer.startIndex + 2], code, items)
    return nil
  }
}
