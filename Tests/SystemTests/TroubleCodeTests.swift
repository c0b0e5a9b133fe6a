// Trouble codes of the simulated petrol car, read and cleared by the real daemon: which are stored, rejected and left.

import Foundation
import Testing

extension WholeHouse {
  @Suite("Trouble codes") struct TroubleCodeTests {
    /// A daemon with a petrol car whose ignition is on, or which drives.
    private func car(_ house: House, _ key: String...) throws -> Program {
      let (_, link) = try house.simulator("--car", "petrol", "--key", key.first ?? "on@0")
      try house.write("[device.car]\nkind = \"obd\"\nlink = \"\(link)\"\nvehicle = \"ice\"\n")
      let daemon = try house.daemon()
      try #require(wait { house.get("mil") == "on" })
      return daemon
    }

    private func codes(_ house: House) throws -> [String] {
      (try house.vehiclectl("dtc", "--json").json()["codes"] as? [[String: Any]] ?? []).compactMap { $0["code"] as? String }
    }

    private func stored(_ house: House) -> String? {
      try? String(contentsOfFile: "\(house.directory)/state/devices/car/cleared-codes", encoding: .utf8)
    }

    @Test func `are stored before they are cleared, and permanent ones remain`() throws {
      let house = try House()
      let daemon = try car(house)
      #expect(try codes(house) == ["P0133", "P0171", "P0420", "P0715", "P1899-98", "U0121-87"])
      let shown = house.vehiclectl("dtc")
      #expect(shown.output.contains("\nfreeze frame of P0133 (7E8, frame 0)\n") && shown.output.contains("speed"), "\(shown)")
      #expect(shown.output.contains("service 19) are not supported by 7E8, 7E9"))
      let monitors = house.vehiclectl("monitors")
      #expect(monitors.status == 0, "\(monitors)")
      #expect(monitors.output.contains("7E8: malfunction indicator lamp (MIL) on, 2 stored trouble codes"), "\(monitors)")
      #expect(monitors.output.contains("catalyst bank 1") && monitors.output.contains("failed"))
      let refused = house.vehiclectl("dtc", "clear")
      #expect(refused.status == 2 && refused.errors.contains("use --yes") && stored(house) == nil)
      let raw = house.vehiclectl("do", "query", "04")
      #expect(raw.status == 1 && raw.errors.contains("raw-not-allowed"))

      let cleared = house.vehiclectl("dtc", "clear", "--yes", "--json")
      #expect(cleared.status == 0, "\(cleared)")
      let json = try cleared.json()
      let lost = json["lost"] as? [String: Any]
      #expect((lost?["codes"] as? [Any])?.count == 4 && (lost?["frames"] as? [Any])?.count == 1 && (lost?["tests"] as? [Any])?.count == 8)
      #expect((json["results"] as? [[String: Any]])?.compactMap { $0["result"] as? String } == ["cleared", "cleared"])
      #expect((json["remaining"] as? [[String: Any]])?.compactMap { $0["code"] as? String } == ["P0420"])
      let line = "7E8 P0133 (stored), P0171 (pending), P0420 (stored, permanent), freeze frame of P0133; 7E9 P0715 (stored)"
      #expect(stored(house)?.hasSuffix("Z \(line)\n") == true && daemon.complaints.contains("clearing the trouble codes: \(line)"))
      #expect(daemon.complaints.contains("7E8 cleared; 7E9 cleared"))
      #expect(wait { house.get("mil") == "off" && house.get("dtc-count") == "0" })
      #expect(try codes(house) == ["P0420", "P1899-98", "U0121-87"])
      #expect(daemon.end() == 0)
    }

    @Test func `of a moving car are not cleared`() throws {
      let house = try House()
      let daemon = try car(house, "run@0")
      let refused = house.vehiclectl("dtc", "clear", "--yes")
      #expect(refused.status == 1 && refused.errors.contains("(moving)") && refused.errors.contains("will be lost:"), "\(refused)")
      #expect(try stored(house) == nil && codes(house).count == 6 && daemon.isRunning)
    }

    @Test func `are not cleared if they cannot be stored`() throws {
      let house = try House()
      let daemon = try car(house)
      // A non-empty folder with the file's name blocks the file for every user.
      try FileManager.default.createDirectory(
        atPath: "\(house.directory)/state/devices/car/cleared-codes/in-the-way", withIntermediateDirectories: true)
      let refused = house.vehiclectl("dtc", "clear", "--yes")
      #expect(refused.status == 1 && refused.errors.contains("(not-stored)"), "\(refused)")
      #expect(try codes(house).count == 6 && daemon.isRunning)
    }
  }
}
