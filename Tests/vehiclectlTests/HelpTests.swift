// The help that the program prints.

import Testing

@testable import vehiclectl

@Suite struct HelpTests {
  private static func help(_ words: String, columns: String = "80") throws -> [String] {
    let outcome = try Program.run(words.split(separator: " ").map(String.init) + ["--help"], environment: ["COLUMNS": columns])
    #expect(outcome.status == 0 && outcome.stderr.isEmpty)
    return outcome.stdout.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
  }

  @Test func `the options of a command come first, the common ones are one line`() throws {
    let lines = try Self.help("watch")
    let usage = try #require(lines.firstIndex { $0.hasPrefix("USAGE:") })
    #expect(
      Array(lines[usage...]) == [
        "USAGE: vehiclectl watch [<options>] [<ref> ...]", "", "ARGUMENTS:",
        "  <ref>                   DEVICE, PROPERTY, DEVICE.PROPERTY, or a pattern",
        "                          (default: all).", "", "OPTIONS:",
        "  --count <n>             Stop after this many lines or updates.",
        "  --interval <ms>         Minimum interval between updates in ms, 0 (print",
        "                          every change) to 3600000.",
        "  --frames                Show the frames of a CAN bus instead of values.",
        "  --plot                  On a terminal, plot these properties as they change.",
        "  --last <duration>       With --plot, the time that is shown: 30s, 5min, at",
        "                          most 1h (default: 1min).", "",
        "Common options, see \"vehiclectl --help\": --json, --quiet, --verbose, --timeout,",
        "--color, --units, --socket, --help", "",
      ], "\(lines[usage...].joined(separator: "\n"))")
  }

  @Test func `the help of the program explains the common options last`() throws {
    let lines = try Self.help("")
    let sections = lines.filter { $0.hasSuffix(":") && !$0.hasPrefix(" ") }
    #expect(sections.first == "VALUES:" && sections.last == "COMMON OPTIONS:", "\(sections)")
    #expect(lines.contains("USAGE: vehiclectl [<options>] <subcommand>"))
    for option in ["--json", "--quiet", "--verbose", "--timeout", "--color", "--units", "--socket", "--version", "--help"] {
      #expect(lines.filter { $0.hasPrefix("  -") && $0.contains(option) }.count == 1, "\(option)")
    }
    #expect(try Self.help("help") == lines)
  }

  @Test func `no line is wider than 80 columns, and none is lost`() throws {
    for (words, type) in try ManualTests.commands() {
      let lines = try Self.help(words)
      #expect(lines.allSatisfy { $0.displayWidth <= 80 }, "\(words)")
      #expect(lines.filter { $0.hasPrefix("Common options") }.count == 1 && !lines.contains { $0.hasPrefix("  --socket") }, "\(words)")
      // Every other line of ArgumentParser's help is printed.
      let common = CommonOptions.helpMessage(columns: 80).split(separator: "\n")
      for line in VehicleCtl.helpMessage(for: type, columns: 80).split(separator: "\n") where line.hasPrefix("  ") && !common.contains(line)
      {
        #expect(lines.contains(String(line)) || line.contains("--version"), "\(words): \(line)")
      }
    }
  }

  @Test func `an inner command has its own help`() throws {
    for words in ["dtc clear", "help dtc clear", "dtc clear car"] {
      #expect(try Self.help(words).contains("USAGE: vehiclectl dtc clear [<options>] [--yes] [<device>]"), "\(words)")
    }
  }

  @Test func `other texts are printed as they are`() {
    for text in ["", "0.1.0", "USAGE: x", "a\nUSAGE: b"] { #expect(Help.arranged(text, width: 80) == text) }
  }
}
