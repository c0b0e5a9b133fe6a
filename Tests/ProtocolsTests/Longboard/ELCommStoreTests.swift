import Peers
import Testing

@testable import Protocols

/// The values that survive resets of the board and restarts of the daemon.
@Suite struct ELCommStoreTests {
  @Test func `the total includes all distances across resets and restarts, and never decreases`() throws {
    var rig = try ELCommRig(faults: "reset:137")
    rig.start()
    var shown = 0.0
    var most = 0.0
    for turn in 0..<240 {
      rig.run(for: .second)
      if turn % 17 == 16 { try rig.restart() }
      guard let total = rig.number("total-distance") else { continue }
      #expect(total >= shown, "at \(turn) s")
      shown = total
      most = max(most, rig.number("distance") ?? 0)
    }
    #expect(shown > most && shown > 0.8, "\(shown) \(most)")
    #expect(rig.stores < 400)
  }

  @Test func `a distance that is not stored is not published`() throws {
    var rig = try ELCommRig()
    rig.start(for: 3 * .second)
    #expect(rig.number("total-distance") == 0)
    rig.diskWorks = false
    rig.run(for: 40 * .second)
    #expect(rig.number("total-distance").map { $0 < 0.05 } == true && rig.number("distance").map { $0 > 0.2 } == true)
    rig.diskWorks = true
    rig.run(for: 12 * .second)
    #expect(rig.number("total-distance").map { $0 > 0.2 } == true)
    #expect(rig.stores < 70)
  }

  @Test func `the stored total is published before the board responds`() throws {
    var rig = try ELCommRig()
    #expect(rig.number("total-distance") == nil)
    rig.give(.started(restored: ["distance": Array("1000 35".utf8), "name": Array("Torq".utf8)], wall: WallTime(microseconds: 0)))
    #expect(rig.number("total-distance") == 16.09 && rig.text("name") == "Torq")
  }

  @Test(arguments: ["9223372036854775807 5", "1 -9223372036854775808", "\u{0}\u{1}", "99999999999999999999 1", "5"])
  func `a damaged file is ignored`(_ text: String) throws {
    var rig = try ELCommRig()
    rig.start(restored: ["distance": Array(text.utf8), "name": [0xFF, 7, 10], "dialect": Array("klingon".utf8)], for: 20 * .second)
    #expect(rig.status == "live" && rig.number("total-distance").map { $0 >= 0 && $0 < 1 } == true)
    #expect(rig.absence("name") == "not set: vehiclectl set DEVICE.name NAME")
    #expect(rig.events.count { $0 == "stored settings are corrupt and were discarded: name; set them again" } == 1, "\(rig.events)")
  }

  @Test func `a damaged digit does not increase the total`() throws {
    var rig = try ELCommRig()
    rig.start(for: 5 * .second)
    let total = try #require(rig.number("total-distance"))
    rig.receive("3$88$1$90.35")
    rig.run(for: 2 * .second)
    #expect(rig.number("total-distance").map { $0 < total + 0.2 } == true)
  }

  @Test func `negative distances are published, and increase the total`() throws {
    var rig = try ELCommRig(["dialect": .string("documented")])
    rig.isBoardMute = true
    rig.start()
    for hundredths in 0..<8 {
      rig.receive("-3$88$1$-0.0\(hundredths)")
      rig.run(for: .second)
    }
    #expect(rig.number("distance") == -0.11 && rig.number("speed") == -4.8 && rig.number("total-distance") == 0.11)
  }

  @Test func `a name is stored, connected or not`() throws {
    var rig = try ELCommRig()
    rig.give(.started(restored: [:], wall: WallTime(microseconds: 0)))
    rig.set("name", .string("Žralok 🦈"))
    #expect(rig.isDone() && rig.text("name") == "Žralok 🦈" && rig.disk["name"] == Array("Žralok 🦈".utf8))
    for (id, name) in ["twelve signs", "a\nb", "\u{1B}[31m"].enumerated() {
      rig.set("name", .string(name), id: CommandID(id + 2))
      guard case .invalid(argument: "name", _)? = rig.error(CommandID(id + 2)) else { Issue.record("\(name) was taken"); continue }
    }
    rig.set("name", .string(""), id: 9)
    #expect(rig.isDone(9) && rig.absence("name") != nil && rig.disk["name"] == nil)
    rig.diskWorks = false
    rig.set("name", .string("lost"), id: 10)
    #expect(rig.error(10) == .refused(code: .notStored, "no space") && rig.text("name") == nil)
  }
}
