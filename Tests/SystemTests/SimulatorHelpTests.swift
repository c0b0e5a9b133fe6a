// The help of the simulators in a terminal of 80 columns.

import Testing

extension EndToEnd {
  @Suite("The help of the simulators") struct SimulatorHelpTests {
    @Test(arguments: ["obd", "can", "rc-car", "longboard", "toy", "mirror", "weather", "trivia"])
    func `tables fit into 80 columns, and the second column stays one`(_ simulator: String) throws {
      let rig = try Rig()
      let program = try rig.start("vehiclesim", [simulator, "--help"], environment: ["COLUMNS": "80"])
      let lines = program.outcome().output.split(separator: "\n", omittingEmptySubsequences: false)
      let rows = lines.indices.filter {
        lines[$0].hasPrefix("  ") && (lines[$0].dropFirst(2).contains("  ") || lines[$0].contains("vehiclesim "))
      }
      #expect(rows.count > 3)
      for row in rows {
        #expect(lines[row].count <= 80)
        let next = row + 1 < lines.count ? lines[row + 1] : ""
        #expect(next.isEmpty || next.hasPrefix("  "), "\(next)")
      }
    }
  }
}
