// Trouble codes of the simulated petrol car, read and cleared by the real daemon: which are stored, rejected and left.

import Foundation
import Testing

extension EndToEnd {
  @Suite("Trouble codes") struct TroubleCodeTests {
    /// A daemon with a petrol car whose ignition is on, or which drives.
    private func car(_ rig: Rig, _ key: String...) throws -> Program {
      let (_, link) = try rig.simulator("--car", "petrol", "--key", key.first ?? "on@0")
      try rig.write("[device.car]\nkind = \"obd\"\nlink = \"\(link)\"\nvehicle = \"generic\"\n")
      let daemon = try rig.daemon()
      try #require(wait { rig.get("mil") == "on" })
      return daemon
    }

    private func codes(_ rig: Rig) throws -> [String] {
      (try rig.vehiclectl("dtc", "--json").json()["codes"] as? [[String: Any]] ?? []).compactMap { $0["code"] as? String }
    }

    private func stored(_ rig: Rig) -> String? {
      try? String(contentsOfFile: "\(rig.directory)/state/devices/car/cleared-codes", encoding: .utf8)
    }

    @Test func `are stored before they are cleared, and permanent ones remain`() throws {
      let rig = try Rig()
      let daemon = try car(rig)
      #expect(try codes(rig) == ["P0133", "P0171", "P0420", "P0715", "P1899-98", "U0121-87"])
      let shown = rig.vehiclectl("dtc")
      #expect(shown.output.contains("\nfreeze frame of P0133 (7E8, frame 0)\n") && shown.output.contains("speed"), "\(shown)")
      #expect(shown.output.contains("service 19) are not supported by 7E8, 7E9"))
      let monitors = rig.vehiclectl("monitors")
      #expect(monitors.status == 0, "\(monitors)")
      #expect(monitors.output.contains("7E8: malfunction indicator lamp (MIL) on, 2 stored trouble codes"), "\(monitors)")
      #expect(monitors.output.contains("catalyst bank 1") && monitors.output.contains("failed"))
      let refused = rig.vehiclectl("dtc", "clear")
      #expect(refused.status == 2 && refused.errors.contains("use --yes") && stored(rig) == nil)
      let raw = rig.vehiclectl("do", "query", "04")
      #expect(raw.status == 1 && raw.errors.contains("raw-not-allowed"))

      let cleared = rig.vehiclectl("dtc", "clear", "--yes", "--json")
      #expect(cleared.status == 0, "\(cleared)")
      let json = try cleared.json()
      let lost = json["lost"] as? [String: Any]
      #expect((lost?["codes"] as? [Any])?.count == 4 && (lost?["frames"] as? [Any])?.count == 1 && (lost?["tests"] as? [Any])?.count == 8)
      #expect((json["results"] as? [[String: Any]])?.compactMap { $0["result"] as? String } == ["cleared", "cleared"])
      #expect((json["remaining"] as? [[String: Any]])?.compactMap { $0["code"] as? String } == ["P0420"])
      let line = "7E8 P0133 (stored), P0171 (pending), P0420 (stored, permanent), freeze frame of P0133; 7E9 P0715 (stored)"
      #expect(stored(rig)?.hasSuffix("Z \(line)\n") == true && daemon.stderr.contains("clearing the trouble codes: \(line)"))
      #expect(daemon.stderr.contains("7E8 cleared; 7E9 cleared"))
      #expect(wait { rig.get("mil") == "off" && rig.get("dtc-count") == "0" })
      #expect(try codes(rig) == ["P0420", "P1899-98", "U0121-87"])
      #expect(daemon.end() == 0)
    }

    @Test func `of a moving car are not cleared`() throws {
      let rig = try Rig()
      let daemon = try car(rig, "run@0")
      let refused = rig.vehiclectl("dtc", "clear", "--yes")
      #expect(refused.status == 1 && refused.errors.contains("(moving)") && !refused.errors.contains("will be lost:"), "\(refused)")
      #expect(try stored(rig) == nil && codes(rig).count == 6 && daemon.isRunning)
    }

    @Test func `are not cleared if they cannot be stored`() throws {
      let rig = try Rig()
      let daemon = try car(rig)
      // A non-empty folder with the file's name blocks the file for every user.
      try FileManager.default.createDirectory(
        atPath: "\(rig.directory)/state/devices/car/cleared-codes/in-the-way", withIntermediateDirectories: true)
      let refused = rig.vehiclectl("dtc", "clear", "--yes")
      #expect(refused.status == 1 && refused.errors.contains("(not-stored)"), "\(refused)")
      #expect(try codes(rig).count == 6 && daemon.isRunning)
    }
  }
}
