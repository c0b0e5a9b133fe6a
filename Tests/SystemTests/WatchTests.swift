// The full-screen view of `vehiclectl watch`, drawn by the real program in a pseudo-terminal, rendered by the PyPI package pyte, and compared
// with the pictures in Tests/Screens. The daemon behind it is a fixed one (Tests/Peers/screen.py).

import Foundation
import Testing

extension EndToEnd {
  @Suite("The view") struct WatchTests {
    private static let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().path

    @Test(arguments: [
      ("ev", "80x24", ""), ("ev", "160x50", ""), ("cells", "80x24", "/ c e l l"), ("problem", "80x24", "tab tab tab"),
      ("help", "80x24", "?"),
      ("all", "160x50", "a"), ("small", "40x12", ""),
    ])
    func `the screen is that of the golden file`(_ name: String, _ size: String, _ keys: String) throws {
      let rig = try Rig()
      let golden = "\(Self.tests)/Screens/\(name)-\(size).txt"
      let outcome = rig.run(
        Rig.python, ["\(Self.tests)/Peers/screen.py", size, keys, golden, "\(Rig.programs)/vehiclectl", rig.socket])
      #expect(outcome.status == 0, "\(outcome.errors)\n\(outcome.output)")
    }
  }
}
