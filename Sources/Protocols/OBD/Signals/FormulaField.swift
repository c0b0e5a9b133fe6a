// Recognises formulas that read one number and convert it linearly. These are evaluated without the program of the formula. The result is
// exactly the same: whole numbers are exact in both cases, and the operations that round are the same, in the same order.

extension DataRow.Source {
  /// A field if the formula reads one number and converts it linearly, otherwise the formula's program.
  static func formula(_ expression: Expression) -> DataRow.Source { LinearField(expression).map { .field($0) } ?? .program(expression) }
}

extension LinearField {
  /// Recognises a linear formula, such as `(A*256+B)/10-40` or `A == 255 ? absent : A-40`; nil for other formulas.
  init?(_ expression: Expression) {
    let steps = expression.steps
    guard let jump = steps.firstIndex(where: { if case .jumpIfZero = $0 { true } else { false } }) else {
      guard let field = Self.field(of: steps[...]) else { return nil }
      self = field
      return
    }
    // `X == N ? absent : Y` is the program X, N, ==, jumpIfZero, absent, jump, Y.
    guard jump >= 3, jump + 3 < steps.count, steps[jump] == .jumpIfZero(to: jump + 3), steps[jump - 1] == .binary(.equal),
      case .number(let constant) = steps[jump - 2], let raw = Expression.int(constant), case .absent(let reason) = steps[jump + 1],
      steps[jump + 2] == .jump(to: steps.count), let tested = Self.field(of: steps[..<(jump - 2)]),
      let field = Self.field(of: steps[(jump + 3)...]), tested == LinearField(field.number)
    else { return nil }
    self.init(
      field.number, factor: field.factor, divisor: field.divisor, offset: field.offset, sentinel: Sentinel(raw: raw, reason: reason))
  }

  /// The field that these steps compute; nil if they compute anything else.
  private static func field(of steps: ArraySlice<Expression.Step>) -> LinearField? {
    var stack: [Term] = []
    for step in steps {
      switch step {
      case .number(let constant): stack.append(.constant(constant))
      case .byte(let offset): stack.append(.bytes([offset: 1]))
      case .bit(let offset, let bit): stack.append(.linear(LinearField(NumberField(byteOffset: offset, layout: .bit(bit)))))
      case .unary(let operation):
        guard let term = stack.popLast()?.applying(operation) else { return nil }
        stack.append(term)
      case .binary(let operation):
        guard let right = stack.popLast(), let term = stack.popLast()?.applying(operation, right) else { return nil }
        stack.append(term)
      case .float32, .absent, .length, .jumpIfZero, .jump: return nil
      }
    }
    return stack.count == 1 ? stack[0].linear : nil
  }

  /// A part of a formula during recognition.
  private enum Term {
    case constant(Double)
    /// A number that is being assembled: the weights of its bytes (powers of 256), by offset.
    case bytes([Int: Double])
    case linear(LinearField)

    private static let weights = [1, 0x100, 0x1_0000, 0x100_0000] as [Double]

    /// The term as a linear conversion; nil if it is not one.
    var linear: LinearField? {
      switch self {
      case .constant: return nil
      case .linear(let field): return field
      case .bytes(let bytes):
        let sorted = bytes.sorted { $0.key < $1.key }
        let (first, weights) = (sorted[0].key, sorted.map(\.value))
        guard sorted.enumerated().allSatisfy({ $0.element.key == first + $0.offset }) else { return nil }
        switch weights {
        case [0x100, 1]: return LinearField(.u16(first))
        case [1, 0x100]: return LinearField(.littleU16(first))
        case [0x1_0000, 0x100, 1]: return LinearField(.u24(first))
        case [0x100_0000, 0x1_0000, 0x100, 1]: return LinearField(.u32(first))
        default: return weights.count == 1 ? LinearField(.u8(first), factor: weights[0]) : nil
        }
      }
    }

    func applying(_ operation: Expression.Unary) -> Term? {
      switch operation {
      case .negative: return linear.map { .linear(LinearField($0.number, factor: -$0.factor, divisor: $0.divisor, offset: 0 - $0.offset)) }
      case .signed(let bits): return signed(bits)
      default: return nil
      }
    }

    func applying(_ operation: Expression.Binary, _ right: Term) -> Term? {
      switch (operation, self, right) {
      case (.add, .bytes(let left), .bytes(let right)), (.or, .bytes(let left), .bytes(let right)):
        let all = left.merging(right) { $0 + $1 }
        guard all.count == left.count + right.count, Set(all.values).count == all.count else { return nil }
        return .bytes(all)
      case (.multiply, .bytes(let bytes), .constant(let factor)), (.multiply, .constant(let factor), .bytes(let bytes)):
        return shifted(bytes, factor) ?? Self.bytes(bytes).linear?.multiplied(by: factor)
      case (.shiftLeft, .bytes(let bytes), .constant(let count)):
        return Expression.int(count).flatMap { Expression.shifts.contains($0) ? shifted(bytes, Double(1 << $0)) : nil }
      case (.signed, _, .constant(let bits)): return Expression.int(bits).flatMap(signed)
      case (.multiply, _, .constant(let factor)): return linear?.multiplied(by: factor)
      case (.multiply, .constant(let factor), _): return right.linear?.multiplied(by: factor)
      case (.divide, _, .constant(let divisor)): return linear?.divided(by: divisor)
      case (.add, _, .constant(let constant)): return linear?.adding(constant)
      case (.add, .constant(let constant), _): return right.linear?.adding(constant)
      case (.subtract, _, .constant(let constant)): return linear?.adding(-constant)
      case (.subtract, .constant(let constant), _): return right.applying(.negative)?.linear?.adding(constant)
      default: return nil
      }
    }

    /// The bytes with their weights multiplied by a factor; nil if a resulting weight is not a power of 256.
    private func shifted(_ bytes: [Int: Double], _ factor: Double) -> Term? {
      let shifted = bytes.mapValues { $0 * factor }
      return shifted.values.allSatisfy(Self.weights.contains) ? .bytes(shifted) : nil
    }

    private func signed(_ bits: Int) -> Term? {
      guard case .bytes = self, let linear, linear.factor == 1, 8 * linear.number.layout.size == bits else { return nil }
      let offset = linear.number.byteOffset
      switch linear.number.layout {
      case .u8: return .linear(LinearField(.s8(offset)))
      case .u16: return .linear(LinearField(.s16(offset)))
      case .littleU16: return .linear(LinearField(.littleS16(offset)))
      default: return nil
      }
    }
  }

  // A conversion has a factor, a divisor and an offset, each at most once and in this order. Adding zero turns -0 into 0.
  private func multiplied(by factor: Double) -> Term? {
    abs(self.factor) == 1 && divisor == 1 && offset == 0 && Self.isUsable(factor)
      ? .linear(LinearField(number, factor: self.factor * factor)) : nil
  }

  private func divided(by divisor: Double) -> Term? {
    self.divisor == 1 && offset == 0 && Self.isUsable(divisor) ? .linear(LinearField(number, factor: factor, divisor: divisor)) : nil
  }

  private func adding(_ constant: Double) -> Term? {
    offset == 0 && (constant == 0 || Self.isUsable(constant))
      ? .linear(LinearField(number, factor: factor, divisor: divisor, offset: constant + 0)) : nil
  }

  /// Whether a constant is in a range in which no result is infinite or rounded to zero.
  private static func isUsable(_ constant: Double) -> Bool { (1e-30...1e30).contains(abs(constant)) }
}
