// All output of the program. Results go to stdout, everything else to stderr; errors are one line. A closed stdout ends the program quietly
// with status 0, but never replaces the exit code of a failure.

import Glibc
import Protocols

enum Style: String {
  case plain = ""
  case bold = "1"
  case dim = "2"
  case good = "32"
  case warning = "33"
  case bad = "31"
}

struct Output {
  let json: Bool
  let quiet: Bool
  let verbose: Bool
  let colour: Bool

  /// Creates the output for an error in the command line, before the options are known.
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

  /// Prints lines of the result.
  func lines(_ lines: [String]) {
    Self.write(lines.map { $0 + "\n" }.joined(), to: STDOUT_FILENO)
  }

  /// Prints a line of the result.
  func line(_ line: String) { lines([line]) }

  /// The width of stdout in cells; nil if it is not a terminal.
  static var width: Int? { Terminal.isTerminal(STDOUT_FILENO) ? Terminal.window.columns : nil }

  /// The line, cut to the width of the terminal, if stdout is one.
  func fit(_ line: String) -> String { Terminal.isTerminal(STDOUT_FILENO) ? line.cut(to: Terminal.window.columns) : line }

  /// Prints the result as one line of JSON.
  func json(_ value: JSON) { line(value.text) }

  /// Writes bytes of the result unchanged.
  func bytes(_ bytes: [UInt8]) { Self.write(bytes, to: STDOUT_FILENO) }

  /// Prints a note on stderr, unless --quiet is given.
  func note(_ message: String) {
    if !quiet { Self.write(message + "\n", to: STDERR_FILENO) }
  }

  /// Prints text that the user needs to answer a prompt: on stderr, even with --quiet.
  func promptText(_ lines: [String]) { Self.write(lines.map { $0 + "\n" }.joined(), to: STDERR_FILENO) }

  /// Shows progress in a line that the next one overwrites, if stderr is a terminal. nil clears it.
  func progress(_ text: String?) {
    guard !quiet, !json, Terminal.isTerminal(STDERR_FILENO) else { return }
    Self.write("\r" + (text ?? "").cut(to: Terminal.window.columns - 1) + "\u{1b}[K", to: STDERR_FILENO)
  }

  /// Prints an error as one line on stderr, with --json also as JSON on stdout.
  func fail(_ failure: Failure) {
    printError(failure)
    if json { _ = Self.write(all: Array("\(failure.json.text)\n".utf8)[...], to: STDOUT_FILENO) }
  }

  /// Prints an error on stderr only.
  func printError(_ failure: Failure) {
    let sign = colour && Terminal.isTerminal(STDERR_FILENO) ? paint("vehiclectl:", .bad) : "vehiclectl:"
    let lines = failure.message.split(separator: "\n").map { Self.oneLine(String($0)) }
    Self.write("\(sign) \(lines.joined(separator: "\n"))\n", to: STDERR_FILENO)
  }

  /// Prints a message that was sent to or received from the daemon, for --verbose.
  func trace(_ sent: Bool, _ message: [UInt8]) {
    let text = String(decoding: message.filter { $0 != 0 }, as: UTF8.self)
    Self.write("\(sent ? ">" : "<") \(text)\n", to: STDERR_FILENO)
  }

  /// The text in this style, if colour is on.
  func paint(_ text: String, _ style: Style) -> String {
    colour && style != .plain && !text.isEmpty ? "\u{1b}[\(style.rawValue)m\(text)\u{1b}[0m" : text
  }

  /// Replaces control characters and bidirectional marks by spaces: texts from devices must not control the terminal.
  static func oneLine(_ text: String) -> String {
    String(
      String.UnicodeScalarView(
        text.unicodeScalars.map {
          [.control, .format, .lineSeparator, .paragraphSeparator].contains($0.properties.generalCategory) ? " " : $0
        }))
  }

  static func write(_ text: String, to descriptor: Int32) { write(Array(text.utf8), to: descriptor) }

  static func write(_ bytes: [UInt8], to descriptor: Int32) {
    // Errors when writing to stderr are ignored, because only the result and the exit code matter.
    if write(all: bytes[...], to: descriptor) || descriptor == STDERR_FILENO { return }
    if errno == EPIPE { exit(0) }  // the reader has closed the pipe
    write("vehiclectl: cannot write to stdout: \(String(cString: strerror(errno)))\n", to: STDERR_FILENO)
    exit(1)
  }

  /// Writes all bytes; returns false with errno set on an error.
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
