// Torque's tables: lines of every form, and equations that are converted or rejected.

import Testing

@testable import Protocols
@testable import SignalImport

@Suite struct TorqueTests {
  private func read(_ text: String) throws -> ImportedSignals { try ImportedSignals(Array(text.utf8)) }

  private static let equations: [(String, String)] = [
    ("A", "A"), ("j/2", "J/2"), ("{h:4}", "{H:4}"), ("(A*256+B)/10", "(A*256+B)/10"), ("Signed(BB)*256+BC", "signed(BB)*256+BC"),
    ("(Signed(N)*256)+M", "(signed(N)*256)+M"), ("((v<8)+u)", "((V<<8)+U)"), ("(A>4)*10", "(A>>4)*10"), ("A&15", "A&15"),
    ("(A&15)/2", "(A&15)/2"), ("ABS(A-40)", "abs(A-40)"), ("float32(A:B:C:D)", "float32(A,B,C,D)"), ("max(A:B+1)", "max(A,B+1)"),
    ("INT(A/2)", "int(A/2)"), ("A<<8", "A<<8"),
  ]

  @Test(arguments: equations) func `a supported equation becomes a formula`(_ equation: String, _ formula: String) throws {
    #expect(try TorqueEquation.formula(equation) == formula)
    #expect(throws: Never.self) { _ = try Expression(formula) }
  }

  @Test(arguments: [
    "val{000_Battery Power}*2", "[rpm]*2", "LOOKUP(A::0='x')", "A^2", "v<8+u", "A&15*2", "(A&15+1)/2", "Signed(A*256+B)", "Signed(",
    "EWMAF(0.1:A)", "BARO()", "{A:1", "A<8&3", "INT16(A:B)",
  ])
  func `an unsupported equation is rejected`(_ equation: String) throws {
    #expect(throws: ValueError.self) { _ = try TorqueEquation.formula(equation) }
    #expect(try read("name,short,2101,\(equation.replacing(",", with: ";")),0,1,,7E4\n").count == 0)
  }

  @Test(arguments: ["\n", "\r\n", "\r"]) func `tables are read with any line ending, with or without titles`(_ end: String) throws {
    let line = ##"003_VMCU "Accel" Depth,Pedal,2101,j/2,0,100,%,7E2"##
    let titles = "Name,ShortName,ModeAndPID,Equation,Min Value,Max Value,Units,Header"
    for text in [line, line + end, titles + end + line, "\u{FEFF}" + titles + end + end + line + end] {
      let found = try read(text)
      #expect(found.skipped.isEmpty && found.signals.count == 1, "\(found.skipped)")
      let signal = try #require(found.signals.first)
      #expect(signal.name == "vmcu-accel-depth" && signal.request == "2101" && signal.header == "7E2" && signal.unit == "%")
      #expect(signal.value == "J/2" && signal.minimum == nil && signal.comments == ["Range of Torque's gauge: 0 to 100."])
    }
  }

  @Test func `columns are found by title, and quoted fields may contain commas, quotes and line breaks`() throws {
    let found = try read(
      """
      "Equation","Header","ModeAndPID","Name","Units"
      "max(A,B)","0x7E4","0x22 01 01","Volts ""pack"", high","Volts"
      "A
      ","Auto","0105","two lines","C"
      """)
    #expect(found.skipped.isEmpty, "\(found.skipped)")
    #expect(found.signals.map(\.value) == ["max(A,B)", "A"])
    #expect(found.signals.map(\.header) == ["7E4", nil] && found.signals.map(\.unit) == ["V", "°C"])
    #expect(found.signals.map(\.request) == ["220101", "0105"] && found.signals[0].help == "Volts \"pack\", high")
  }

  @Test func `an unclosed quote discards only its line`() throws {
    let found = try read("One,o,2101,A,0,1,,7E2\n\"oops,Two,2102,A,0,1,,7E2\nThree,t,2103,A,0,1,,7E2\n\nFour,f,nonsense,A,0,1,,7E2\n")
    #expect(found.signals.map(\.request) == ["2101", "2103"])
    #expect(found.skipped.map(\.place) == ["line 2", "line 5 (Four)"], "\(found.skipped)")
  }

  @Test func `a single bit is a boolean`() throws {
    let signal = try #require(try read("Brake,b,2100,{j:0},0,1,,7E2").signals.first)
    #expect(signal.type == .bool && signal.unit == nil && signal.comments.isEmpty)
  }

  @Test func `skipped signals are reported with line and reason`() throws {
    let found = try read(
      """
      Good,g,2101,A,0,1,,7E4

      Session,s,2101,A,0,1,,7E4,1003
      Write,w,2F01,A,0,1,,7E4
      Header,h,2101,A,0,1,,77E4F
      Formula,f,2101,{J:1} -1 * -1},0,1,,7E4
      nothing at all
      Open,"o
      """)
    #expect(found.signals.map(\.name) == ["good", "session"])
    let places = found.skipped.map(\.place)
    #expect(places == ["line 4 (Write)", "line 5 (Header)", "line 6 (Formula)", "line 7 (nothing at all)", "line 8"])
    #expect(found.skipped[2].message.contains("character 14"))
    #expect(
      try read("Name,ModeAndPID,Equation,Header,startDiagnostic\nS,2101,A,7E4,1003").skipped.first?.message.contains("session") == true)
  }

  @Test func `very many fields and lines are read in linear time`() throws {
    #expect(try read(String(repeating: ",", count: 500_000) + "x").skipped.count == 1)
    let many = try read(String(repeating: "A,a,2101,A/2,0,1,,7E4\n", count: 12_000))
    #expect(many.count > 3000 && many.skippedCount == 12_000 - many.count && many.file(from: "x").utf8.count < 1 << 20)
  }
}
