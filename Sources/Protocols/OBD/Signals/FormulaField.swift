// Recognises formulas that read one number and scale it, which are then evaluated without their program. The result is exactly that of the
// program: whole numbers are exact in both, and the operations that round are the same, in the same order.

extension DataRow.Source {
  /// The number that the formula reads, or its program.
  static func formula(_ expression: Expression) -> DataRow.Source { ScaledField(expression).map { .field($0) } ?? .program(expression) }
}

extension ScaledField {
  /// Recognises a linear formula, such as `(A*256+B)/10-40` or `A == 255 ? absent : A-40`; nil for other formulas.
  init?(_ expression: Expression) {
    let steps = expression.steps
    guard let test = steps.firstIndex(where: { if case .skipIfZero = $0 { true } else { false } }) else {
      guard let field = Self.field(of: steps[...]) else { return nil }
      self = field
      return
    }
    // X, N, ==, skipIfZero, absent, skip, Y
    guard test >= 3, test + 3 < steps.count, steps[test] == .skipIfZero(to: test + 3), steps[test - 1] == .two(.equal),
      case .number(let constant) = steps[test - 2], let raw = Expression.whole(constant), case .absent(let why) = steps[test + 1],
      steps[test + 2] == .skip(to: steps.count), let tested = Self.field(of: steps[..<(test - 2)]),
      let field = Self.field(of: steps[(test + 3)...]), tested == ScaledField(field.number)
    else { return nil }
    self.init(field.number, times: field.times, over: field.over, plus: field.plus, sentinel: Sentinel(raw: raw, why: why))
  }

  private static func field(of steps: ArraySlice<Expression.Step>) -> ScaledField? {
    var stack: [Term] = []
    for step in steps {
      switch step {
      case .number(let constant): stack.append(.constant(constant))
      case .byte(let offset): stack.append(.bytes([offset: 1]))
      case .bit(let offset, let bit): stack.append(.line(ScaledField(NumberField(at: offset, layout: .bit(bit)))))
      case .one(let operation):
        guard let term = stack.popLast()?.applying(operation) else { return nil }
        stack.append(term)
      case .two(let operation):
        guard let right = stack.popLast(), let term = stack.popLast()?.applying(operation, right) else { return nil }
        stack.append(term)
      case .float32, .absent, .length, .skipIfZero, .skip: return nil
      }
    }
    return stack.count == 1 ? stack[0].line : nil
  }

  /// A part of a formula during recognition.
  private enum Term {
    case constant(Double)
    /// A number that is being assembled: the weights of its bytes (powers of 256), by offset.
    case bytes([Int: Double])
    case line(ScaledField)

    private static let weights = [1, 0x100, 0x1_0000, 0x100_0000] as [Double]

    /// The term as a linear conversion; nil if it is none.
    var line: ScaledField? {
      switch self {
      case .constant: return nil
      case .line(let line): return line
      case .bytes(let bytes):
        let places = bytes.sorted { $0.key < $1.key }
        let (first, weights) = (places[0].key, places.map(\.value))
        guard places.enumerated().allSatisfy({ $0.element.key == first + $0.offset }) else { return nil }
        switch weights {
        case [0x100, 1]: return ScaledField(.u16(first))
        case [1, 0x100]: return ScaledField(.littleU16(first))
        case [0x1_0000, 0x100, 1]: return ScaledField(.u24(first))
        case [0x100_0000, 0x1_0000, 0x100, 1]: return ScaledField(.u32(first))
        default: return weights.count == 1 ? ScaledField(.u8(first), times: weights[0]) : nil
        }
      }
    }

    func applying(_ operation: Expression.Unary) -> Term? {
      switch operation {
      case .negative: return line.map { .line(ScaledField($0.number, times: -$0.times, over: $0.over, plus: 0 - $0.plus)) }
      case .signed(let bits): return signed(bits)
      default: return nil
      }
    }

    func applying(_ operation: Expression.Binary, _ right: Term) -> Term? {
      switch (operation, self, right) {
      case (.plus, .bytes(let left), .bytes(let right)), (.or, .bytes(let left), .bytes(let right)):
        let all = left.merging(right) { $0 + $1 }
        guard all.count == left.count + right.count, Set(all.values).count == all.count else { return nil }
        return .bytes(all)
      case (.times, .bytes(let bytes), .constant(let factor)), (.times, .constant(let factor), .bytes(let bytes)):
        return shifted(bytes, factor) ?? Self.bytes(bytes).line?.multiplied(by: factor)
      case (.shiftLeft, .bytes(let bytes), .constant(let count)):
        return Expression.whole(count).flatMap { Expression.shifts.contains($0) ? shifted(bytes, Double(1 << $0)) : nil }
      case (.signed, _, .constant(let bits)): return Expression.whole(bits).flatMap(signed)
      case (.times, _, .constant(let factor)): return line?.multiplied(by: factor)
      case (.times, .constant(let factor), _): return right.line?.multiplied(by: factor)
      case (.over, _, .constant(let divisor)): return line?.divided(by: divisor)
      case (.plus, _, .constant(let constant)): return line?.adding(constant)
      case (.plus, .constant(let constant), _): return right.line?.adding(constant)
      case (.minus, _, .constant(let constant)): return line?.adding(-constant)
      case (.minus, .constant(let constant), _): return right.applying(.negative)?.line?.adding(constant)
      default: return nil
      }
    }

    /// The bytes with their weights multiplied by a factor; nil if a weight is then no power of 256.
    private func shifted(_ bytes: [Int: Double], _ factor: Double) -> Term? {
      let shifted = bytes.mapValues { $0 * factor }
      return shifted.values.allSatisfy(Self.weights.contains) ? .bytes(shifted) : nil
    }

    private func signed(_ bits: Int) -> Term? {
      guard case .bytes = self, let line, line.times == 1, 8 * line.number.layout.size == bits else { return nil }
      let at = line.number.at
      switch line.number.layout {
      case .u8: return .line(ScaledField(.s8(at)))
      case .u16: return .line(ScaledField(.s16(at)))
      case .littleU16: return .line(ScaledField(.littleS16(at)))
      default: return nil
      }
    }
  }

  /// A factor, a divisor and a summand, each once and in this order; adding zero turns -0 into 0.
  private func multiplied(by factor: Double) -> Term? {
    abs(times) == 1 && over == 1 && plus == 0 && Self.isUsable(factor) ? .line(ScaledField(number, times: times * factor)) : nil
  }

  private func divided(by divisor: Double) -> Term? {
    over == 1 && plus == 0 && Self.isUsable(divisor) ? .line(ScaledField(number, times: times, over: divisor)) : nil
  }

  private func adding(_ constant: Double) -> Term? {
    plus == 0 && (constant == 0 || Self.isUsable(constant)) ? .line(ScaledField(number, times: times, over: over, plus: constant + 0)) : nil
  }

  /// Whether a constant is in a range in which no result is infinite or rounded to zero.
  private static func isUsable(_ constant: Double) -> Bool { (1e-30...1e30).contains(abs(constant)) }
}
