// The only place that prints. Answers go to stdout, everything else to stderr; errors are one line. A reader that went away
// ends the program quietly, but must never change the exit code of a failure. Colours: bold, dim, green and red of the
// terminal's own palette, readable on dark and light.

import Glibc
import Protocols

enum Style: String {
  case plain = ""
  case bold = "1"
  case dim = "2"
  case good = "32"
  case bad = "31"
}

struct Output {
  let json: Bool
  let quiet: Bool
  let verbose: Bool
  let colour: Bool

  /// Plain, for when the options could not be read.
  init(json: Bool) {
    self.json = json
    quiet = false
    verbose = false
    colour = false
  }

  init(_ common: CommonOptions) {
    json = common.json
    quiet = common.quiet
    verbose = common.verbose
    colour =
      switch common.color {
      case .always: true
      case .never: false
      case .auto: Terminal.isTerminal(STDOUT_FILENO) && Environment["NO_COLOR"] == nil && Environment["TERM"] != "dumb"
      }
  }

  /// Lines of the answer.
  func lines(_ lines: [String]) {
    Self.write(lines.map { $0 + "\n" }.joined(), to: STDOUT_FILENO)
  }

  /// A line of the answer.
  func line(_ line: String) { lines([line]) }

  /// How many cells a line of the output has; nil: it goes to no terminal.
  static var width: Int? { Terminal.isTerminal(STDOUT_FILENO) ? Terminal.window.columns : nil }

  /// The line, cut where a terminal ends; whole for everybody else.
  func fit(_ line: String) -> String { Terminal.isTerminal(STDOUT_FILENO) ? line.cut(to: Terminal.window.columns) : line }

  /// The answer as one line of JSON.
  func json(_ value: JSON) { line(value.text) }

  /// Bytes of the answer, as they are.
  func bytes(_ bytes: [UInt8]) { Self.write(bytes, to: STDOUT_FILENO) }

  /// A remark that is not the answer.
  func note(_ words: String) {
    if !quiet { Self.write(words + "\n", to: STDERR_FILENO) }
  }

  /// Lines that a person needs to answer a question.
  func remarks(_ lines: [String]) { Self.write(lines.map { $0 + "\n" }.joined(), to: STDERR_FILENO) }

  /// How far something is, in a line that the next one overwrites; only where a person looks.
  func progress(_ words: String?) {
    guard !quiet, !json, Terminal.isTerminal(STDERR_FILENO) else { return }
    Self.write("\r" + (words ?? "").cut(to: Terminal.window.columns - 1) + "\u{1b}[K", to: STDERR_FILENO)
  }

  /// What went wrong, in one line; with --json also as JSON where the answer would have been.
  func fail(_ failure: Failure) {
    remark(failure)
    if json { _ = Self.write(all: Array("\(failure.json.text)\n".utf8)[...], to: STDOUT_FILENO) }
  }

  /// The line alone, where the answer says the rest.
  func remark(_ failure: Failure) {
    let sign = colour && Terminal.isTerminal(STDERR_FILENO) ? paint("vehiclectl:", .bad) : "vehiclectl:"
    let lines = failure.message.split(separator: "\n").map { Self.oneLine(String($0)) }
    Self.write("\(sign) \(lines.joined(separator: "\n"))\n", to: STDERR_FILENO)
  }

  /// A message on the socket, for people who want to see it.
  func trace(_ sent: Bool, _ message: [UInt8]) {
    let text = String(decoding: message.filter { $0 != 0 }, as: UTF8.self)
    Self.write("\(sent ? ">" : "<") \(text)\n", to: STDERR_FILENO)
  }

  /// The text in this style, where there are colours.
  func paint(_ text: String, _ style: Style) -> String {
    colour && style != .plain && !text.isEmpty ? "\u{1b}[\(style.rawValue)m\(text)\u{1b}[0m" : text
  }

  /// Without control characters and marks that turn the direction of writing: texts come from devices, and a terminal obeys
  /// what it is sent.
  static func oneLine(_ text: String) -> String {
    String(
      String.UnicodeScalarView(
        text.unicodeScalars.map {
          [.control, .format, .lineSeparator, .paragraphSeparator].contains($0.properties.generalCategory) ? " " : $0
        }))
  }

  static func write(_ text: String, to descriptor: Int32) { write(Array(text.utf8), to: descriptor) }

  private static func write(_ bytes: [UInt8], to descriptor: Int32) {
    // What is said on stderr may be lost; the answer and the exit code are what counts.
    if write(all: bytes[...], to: descriptor) || descriptor == STDERR_FILENO { return }
    if errno == EPIPE { exit(0) }  // nobody is left to tell
    write("vehiclectl: cannot write the answer: \(String(cString: strerror(errno)))\n", to: STDERR_FILENO)
    exit(1)
  }

  /// Writes everything, or gives false and leaves errno.
  static func write(all bytes: ArraySlice<UInt8>, to descriptor: Int32) -> Bool {
    var rest = bytes
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count >= 0 {
        rest = rest.dropFirst(count)
      } else if errno == EAGAIN {
        usleep(1_000)
      } else if errno != EINTR {
        return false
      }
    }
    return true
  }
}
