// Formulas: results, missing results, and errors with their position.

import Testing

@testable import Peers
@testable import Protocols

@Suite struct ExpressionTests {
  private func value(_ text: String, _ data: [UInt8]) throws -> Expression.Outcome {
    let expression = try Expression(text)
    return data.withUnsafeBufferPointer { expression.evaluate($0) }
  }

  private func problem(_ text: String) -> ExpressionError? {
    do throws(ExpressionError) { _ = try Expression(text) } catch { return error }
    return nil
  }

  private static let results: [(String, Double)] = [
    ("A", 10.0), ("a", 10), ("(A*256+B)/10", 258), ("J/2", 17), ("{J:5}", 1), ("{j:4}", 0), ("Signed(C)*256+D", -252), ("SIGNED(C)", -1),
    ("signed(C*256+D, 16)", -252), ("Signed16(C,D)", -252), ("signed16(C*256+D)", -252), ("signed24(C,C,D)", -252),
    ("signed32(C,C,C,D)", -252), ("signed(A & 15, 4)", -6), ("float32(0*A+0x40, 0x49, 0x0F, 0xDB)", 3.1415927410125732),
    ("A + B*2 - D/4%3", 49), ("-A + 5", -5), ("2 - -A", 12), ("~A & 0xFF", 245), ("A << 4 | D", 164), ("C >> 4 ^ 1", 14),
    ("A & 2 == 2", 1), ("A != 10 || B >= 20", 1), ("A > 3 && B < 2", 0), ("!A", 0), ("A == 10 ? B : C", 20), ("A ? B ? 1 : 2 : 3", 1),
    ("A == 1 ? 1 : A == 10 ? 2 : 3", 2), ("min(A, B, C) + max(A, B)", 30), ("abs(-A)", 10), ("int(-A/4)", -2), ("round(A/4)", 3),
    (".5*A + 1.5e1 + 5.", 25), ("0x1F * A", 310), ("\tA\n", 10), ("-7 % 3 + A", 9), ("(A - 20) >> 1", -5), ("A*0 - 0", 0),
  ]

  @Test(arguments: results)
  func `a formula gives`(_ text: String, _ result: Double) throws {
    #expect(try value(text, [10, 20, 0xFF, 4, 5, 6, 7, 8, 9, 0x22]) == .number(result))
  }

  @Test func `a real data record gives the published values`() throws {
    let record = Vector.data(of: Vector.kona)
    let read = { (text: String) in try value(text, record) }
    #expect(try read("Signed(BB)*256+BC") == .number(824))
    #expect(try read("signed16(k,l)/10") == .number(12))
    #expect(try read("(M*256+N)/10") == .number(375.2))
    #expect(try read("E/2") == .number(65))
    #expect(try read("{AY:2}") == .number(1))
  }

  @Test(arguments: [
    "B/(A-10)", "B%(A-10)", "A << (B*5)", "A << -A", "(A/4) & 1", "signed(A*100)", "signed(A, B*9)", "A*1e300*1e300", "float32(C*2,A,A,A)",
    "float32(0x7F, 0xC0, A, A)", "A*9007199254740993 & 1", "~(A/3)", "A*1e300 >> 1", "signed16(C*2,A)", "A << 52",
  ])
  func `a missing result is absent`(_ text: String) throws {
    #expect(try value(text, [10, 20, 0xFF]) == .absent(.undefined))
  }

  @Test(arguments: ["D", "A+D", "{D:0}", "ZZ", "signed16(C,D)", "A ? D : 0"])
  func `bytes beyond the reply are absent`(_ text: String) throws {
    #expect(try value(text, [10, 20, 0xFF]) == .absent(.notReported))
    #expect(try value(text, []) == .absent(.notReported))
  }

  @Test func `unused operands are not evaluated`() throws {
    #expect(try value("A == 10 ? 1 : D", [10]) == .number(1))
    #expect(try value("A == 10 || D", [10]) == .number(1))
    #expect(try value("A != 10 && D/(A-10) > 1", [10]) == .number(0))
    #expect(try value("A == 0 ? absent : A/5", [0]) == .absent(.notAvailable))
    #expect(try value("A == 0 ? absent : A/5", [5]) == .number(1))
    #expect(try value("A ? Unreported : 1", [5]) == .absent(.notReported) && value("A ? implausible : 1", [5]) == .absent(.implausible))
    #expect(try value("length > 1 ? B : A", [5]) == .number(5) && value("length > 1 ? B : A", [5, 6]) == .number(6))
  }

  private static let problems: [(String, Int, String)] = [
    ("", 0, "the formula is empty"), ("A B", 2, "an operator is missing"), ("A +", 3, "a value is missing"), ("(A", 2, "\")\" is missing"),
    ("A)", 1, "unmatched"), ("A/0", 2, "division by zero"), ("A % 0.0", 4, "division by zero"), ("A << 60", 5, "0 to 52 bits"),
    ("A >> 1.5", 5, "0 to 52 bits"), ("foo(A)", 0, "\"foo\" is neither a byte"), ("A + B4", 4, "\"B4\" is neither a byte"),
    ("AAA", 0, "neither a byte"), ("{A:8}", 3, "bits 0 to 7"), ("{A:12}", 3, "bits 0 to 7"), ("{A}", 2, "\":\" and a bit"),
    ("{12:1}", 1, "needs a byte and a bit"), ("A + 0,5", 5, "decimals with a point"), ("A = 4", 2, "write =="),
    ("1 < A < 5", 6, "cannot be chained"), ("A[1]", 1, "other signals"), ("A + ä", 4, "invalid character"), ("5", 0, "reads no byte"),
    ("signed(A, 1)", 0, "2 to 53 bits"), ("abs(A, B)", 0, "arguments for abs: 2"), ("max(A)", 0, "two or more values"),
    ("signed24(A,B)", 0, "three bytes"), ("abs A", 4, "\"(\" after abs"), ("A ? 1", 5, "\":\" and the other value"),
    ("A*1e400", 2, "not a valid number"), ("A + 0x", 4, "not a valid number"), ("A + .", 4, "not a valid number"),
    ("A ** 2", 3, "is not valid here"),
  ]

  @Test(arguments: problems)
  func `an invalid formula is reported with position and remedy`(_ text: String, _ offset: Int, _ message: String) throws {
    let found = try #require(problem(text))
    #expect(found.offset == offset && found.message.contains(message), "\(found)")
    #expect(found.message.contains("; "), "\(found.message) does not give the remedy")
  }

  @Test func `length, nesting and stack are bounded`() {
    let deep = String(repeating: "(", count: 400)
    for text in [deep + "A", String(repeating: "-", count: 900) + "A", String(repeating: "A+(", count: 30) + "A", deep, "A?" + deep] {
      #expect(problem(text) != nil)
    }
    #expect(problem("A" + String(repeating: "+A", count: 600))?.message.contains("at most 1000") == true)
    #expect(problem("A" + String(repeating: "+A", count: 499)) == nil)
  }

  @Test func `no formula traps, and every result is finite`() {
    var random = SeededRandom(seed: 7)
    let tokens = [
      "A", "B", "ZZ", "{A:3}", "signed(", "signed16(", "float32(", "min(", ")", "(", ",", "?", ":", "+", "-", "*", "/", "%", "<<", ">>",
      "&",
      "|", "^", "~", "!", "&&", "||", "==", "<", ">=", "0", "1e308", "0x1F", "255", ".5", "absent", "8", "\u{0}", "é",
    ]
    var results = 0
    for _ in 0..<30_000 {
      var text = ""
      for _ in 0..<Int.random(in: 1..<12, using: &random) { text += tokens.randomElement(using: &random) ?? "" }
      guard let expression = try? Expression(text) else { continue }
      let data = [UInt8](repeating: .random(in: 0...255, using: &random), count: .random(in: 0..<4, using: &random))
      if case .number(let number) = data.withUnsafeBufferPointer({ expression.evaluate($0) }) {
        #expect(number.isFinite, "\(text)")
        results += 1
      }
    }
    #expect(results > 100)
  }
}
