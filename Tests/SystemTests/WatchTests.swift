// The full-screen view of `vehiclectl watch` and the output of `vehiclectl status`, drawn by the real program in a pseudo-terminal, rendered
// by the PyPI package pyte, and compared with the pictures in Tests/Screens. The daemon behind it is a fixed one (Tests/Peers/screen.py).

import Foundation
import Testing

extension EndToEnd {
  @Suite("The view") struct WatchTests {
    private static let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().path

    @Test(arguments: [
      ("ev", "80x24", ""), ("ev", "160x50", ""), ("cells", "80x24", "/ c e l l"), ("problem", "80x24", "tab tab tab"),
      ("help", "80x24", "?"), ("asleep", "80x24", "6"), ("list", "120x10", "5"),
      ("all", "160x50", "a"), ("small", "40x12", ""),
    ])
    func `the view is that of the golden file`(_ name: String, _ size: String, _ keys: String) throws {
      try check("\(name)-\(size)", size, keys, ["watch"])
    }

    @Test(arguments: [
      ("80x24", []), ("60x12", []), ("40x12", []), ("80x24", ["ev"]), ("80x10", ["ev"]), ("80x24", ["golf"]), ("160x50", ["ev"]),
      ("40x12", ["ev"]), ("80x24", ["mirror"]),
    ])
    func `the status is that of the golden file`(_ size: String, _ device: [String]) throws {
      try check((["status"] + device + [size]).joined(separator: "-"), size, "", ["status"] + device)
    }

    private func check(_ name: String, _ size: String, _ keys: String, _ command: [String]) throws {
      let rig = try Rig()
      let golden = "\(Self.tests)/Screens/\(name).txt"
      let outcome = rig.run(
        Rig.python, ["\(Self.tests)/Peers/screen.py", size, keys, golden, "\(Rig.programs)/vehiclectl", rig.socket] + command)
      #expect(outcome.status == 0, "\(outcome.errors)\n\(outcome.output)")
    }
  }
}
