// A formula over the data bytes of a response. ExpressionParser compiles it once to a flat program for a stack machine. Evaluating the
// program allocates no memory and never traps. If a byte is missing or there is no result, the value is absent. The bytes are named A … Z,
// AA … ZZ; A is the first byte after the echoed identifier, as in Torque.

struct Expression: Sendable, Equatable {
  /// One instruction. Jumps only lead forward, so every program ends.
  enum Step: Sendable, Equatable {
    case number(Double)
    case byte(Int)
    case bit(Int, UInt8)
    case unary(Unary)
    case binary(Binary)
    case float32
    case absent(Absence)
    /// The number of data bytes.
    case length
    /// Removes the top of the stack, and jumps to this step if it is 0.
    case jumpIfZero(to: Int)
    case jump(to: Int)
  }

  /// The stack size; the parser rejects programs that need more.
  static let maxDepth = 16

  let steps: [Step]

  enum Outcome: Equatable {
    case number(Double)
    case absent(Absence)

    /// Whether the outcome is true as a condition: a number other than 0.
    var isTrue: Bool { if case .number(let number) = self { number != 0 } else { false } }
  }

  /// Evaluates the formula for this data.
  func evaluate(_ data: UnsafeBufferPointer<UInt8>) -> Outcome {
    var stack = InlineArray<16, Double>(repeating: 0)
    var depth = 0
    var position = 0
    while position < steps.count {
      let step = steps[position]
      position += 1
      switch step {
      case .number(let number):
        stack[depth] = number
        depth += 1
      case .byte(let offset):
        guard offset < data.count else { return .absent(.notReported) }
        stack[depth] = Double(data[offset])
        depth += 1
      case .bit(let offset, let bit):
        guard offset < data.count else { return .absent(.notReported) }
        stack[depth] = Double(data[offset] >> bit & 1)
        depth += 1
      case .unary(let operation):
        guard let result = operation(stack[depth - 1]) else { return .absent(.undefined) }
        stack[depth - 1] = result
      case .binary(let operation):
        guard let result = operation(stack[depth - 2], stack[depth - 1]), result.isFinite else { return .absent(.undefined) }
        depth -= 1
        stack[depth - 1] = result
      case .float32:
        guard let result = Self.float32(stack[depth - 4], stack[depth - 3], stack[depth - 2], stack[depth - 1]) else {
          return .absent(.undefined)
        }
        depth -= 3
        stack[depth - 1] = result
      case .absent(let absence): return .absent(absence)
      case .length:
        stack[depth] = Double(data.count)
        depth += 1
      case .jumpIfZero(let target):
        depth -= 1
        if stack[depth] == 0 { position = target }
      case .jump(let target): position = target
      }
    }
    return .number(stack[0] + 0)  // -0 becomes 0
  }
}
