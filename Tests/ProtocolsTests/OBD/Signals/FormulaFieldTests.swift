// Formulas that are compiled to the read of one field: which ones, and that nothing else changes.

import Testing

@testable import Peers
@testable import Protocols

@Suite struct FormulaFieldTests {
  private static let fields: [(String, LinearField)] = [
    ("A", LinearField(.u8(0))), ("signed(C)", LinearField(.s8(2))), ("A-40", LinearField(.u8(0), offset: -40)),
    ("A*100/255", LinearField(.u8(0), factor: 100, divisor: 255)), ("(A*256+B)/4", LinearField(.u16(0), divisor: 4)),
    ("(B + A*256)*2/65536", LinearField(.u16(0), factor: 2, divisor: 65536)), ("B<<8|A", LinearField(.littleU16(0))),
    ("signed16(B,C)/10", LinearField(.s16(1), divisor: 10)), ("signed(C*256+B, 16)/64", LinearField(.littleS16(1), divisor: 64)),
    ("G*65536+H*256+I", LinearField(.u24(6))), ("((A*256+B)*256+C)*256+D", LinearField(.u32(0))),
    ("{J:5}", LinearField(NumberField(byteOffset: 9, layout: .bit(5)))),
    ("327 - (S*256+T)/100", LinearField(.u16(18), factor: -1, divisor: 100, offset: 327)),
    ("-A", LinearField(.u8(0), factor: -1)), ("0.079*(A*256+B)", LinearField(.u16(0), factor: 0.079)),
    ("A*256", LinearField(.u8(0), factor: 256)),
    (
      "A == 255 ? absent : A/2-40",
      LinearField(.u8(0), divisor: 2, offset: -40, sentinel: LinearField.Sentinel(raw: 255, reason: .notAvailable))
    ),
    (
      "signed16(A,B) == -1 ? unreported : signed16(A,B)",
      LinearField(.s16(0), sentinel: LinearField.Sentinel(raw: -1, reason: .notReported))
    ),
  ]

  @Test(arguments: fields) func `a formula of one number is a field`(_ text: String, _ field: LinearField) throws {
    #expect(LinearField(try Expression(text)) == field)
  }

  @Test(arguments: [
    "A+B", "A*256+C", "A*B", "(A-40)*2", "A/2/3", "A/2*3", "A-1-1", "A & 15", "round(A/2)", "signed(A, 4)", "signed16(A,C)", "A*1e300",
    "A*0", "A == 255 ? absent : B", "A == 1 ? 2 : A", "A/2 == 3 ? absent : A", "length*A", "1/A", "signed24(A,B,C)", "B*256*256+A",
  ]) func `any other formula stays a program`(_ text: String) throws {
    #expect(LinearField(try Expression(text)) == nil)
  }

  /// The value without compilation.
  private func value(_ program: Expression, _ type: ValueType, _ data: [UInt8]) -> Decoded {
    let row = DataRow(Property("own", type, help: ""), .program(program), outOfRangeReason: .outOfRange)
    return data.withUnsafeBufferPointer { row.read($0) }
  }

  @Test func `a field gives what its program gives, to the last bit`() throws {
    var random = SeededRandom(seed: 3)
    let numbers = ["A", "signed(B)", "(A*256+B)", "signed16(C,D)", "(D*256+C)", "(B*65536+C*256+D)", "((A<<8|B)*65536+C*256+D)", "{C:1}"]
    let constants = ["2", "0.1", "10", "100", "255", "128", "0.079", "65536", "3", "1000", "-1", "0"]
    var compiled = 0
    for _ in 0..<4000 {
      let number = numbers.randomElement(using: &random) ?? ""
      var text = number
      for operation in ["*", "/", "+", "-"] where Bool.random(using: &random) {
        let constant = constants.randomElement(using: &random) ?? ""
        text = operation == "/" || Bool.random(using: &random) ? "\(text)\(operation)(\(constant))" : "(\(constant))\(operation)(\(text))"
      }
      if Bool.random(using: &random) { text = "\(number) == 0xFF ? absent : \(text)" }
      guard let program = try? Expression(text), let field = LinearField(program) else { continue }
      compiled += 1
      for type in [ValueType.float, .int, .bool] {
        let row = DataRow(Property("own", type, help: ""), .field(field), outOfRangeReason: .outOfRange)
        for _ in 0..<8 {
          let count = Int.random(in: 0...5, using: &random)
          let data: [UInt8] = (0..<count).map { _ in [0, 0xFF, .random(in: 0...255, using: &random)].randomElement(using: &random) ?? 0 }
          let read = data.withUnsafeBufferPointer { row.read($0) }
          #expect(read == value(program, type, data), "\(text) of \(data) as \(type)")
          if case .value(.float(let number)) = read { #expect(number != 0 || number.sign == .plus, "\(text)") }
        }
      }
    }
    #expect(compiled > 500)
  }
}
