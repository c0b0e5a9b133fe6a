// The frozen frame of service 02 (SAE J1979): the values of the moment in which a trouble code was stored, in the parameters of
// service 01. Nothing is read from an answer that is not whole.

struct FreezeFrame: Sendable, Equatable {
  /// What one parameter says.
  struct Item: Sendable, Equatable {
    let name: String
    let unit: String?
    let value: Value
  }

  /// The number of the frame, 0 where there is one alone.
  private(set) var frame: UInt8 = 0
  /// The code that froze it: parameter 02.
  private(set) var code: TroubleCode?
  private(set) var items: [Item] = []

  /// The question for one parameter of a frame.
  static func request(_ number: UInt8, frame: UInt8 = 0) -> [UInt8] { [0x02, number, frame] }

  /// Adds what an answer holds, by the scales of the ECU that it comes from, or says why it cannot be read.
  mutating func add(_ answer: ArraySlice<UInt8>, _ scales: Scales = Scales(), from source: UInt32? = nil) -> String? {
    guard answer.first == 0x42 else { return "not a response of service 02" }
    guard answer.count >= 3 else { return "response without a frame number" }
    var code = code
    var items = items
    let problem = StandardParameter.split(answer) { number, data in
      if number == 0x02 {
        let found = TroubleCode(answer[data.lowerBound], answer[data.lowerBound + 1])
        code = found.isFiller ? nil : found
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
