// The end of a replay whose messages the device does not send again.

import Foundation
import Protocols
import Testing
import Varlink

@testable import vehicled

@Suite struct ReplayLinkTests {
  @Loop private final class Owner: LinkOwner {
    var isUp = false
    var reasonDown: String?
    func linkCameUp(maximumSend: Int?) { isUp = true }
    var received: [UInt8] = []
    func linkReceived(_ bytes: [UInt8]) { received += bytes }
    func linkSent(_ id: SendID, failure: String?) {}
    func linkDetailsChanged() {}
    func linkWentDown(_ reason: String, final: Bool) { reasonDown = reason }
  }

  /// A replay of the messages A and B, 1 ms apart.
  @Loop private func replay(for owner: Owner, grace: Nanoseconds) async throws -> ReplayLink {
    let path = temporaryDirectory() + "/ride.ndjson"
    let lines =
      [#"{"format":1,"kind":"obd","device":"ev","date":"2026-01-02T03:04:05Z"}"#]
      + ["A", "B"].enumerated().map { Recording.text(Int64($0) * .millisecond, link: "main", .sent, bytes: Array($1.utf8)) }
    try (lines.joined(separator: "\n") + "\n").write(toFile: path, atomically: true, encoding: .utf8)
    let link = ReplayLink(path: path, speed: 1, disk: Disk(directory: temporaryDirectory()), grace: grace, owner: owner)
    for _ in 0..<1000 where !owner.isUp { try await Task.sleep(nanoseconds: 10_000_000) }
    try #require(owner.isUp)
    return link
  }

  @Test @Loop func `a message that is not sent again ends the replay after the recorded time`() async throws {
    let owner = Owner()
    let link = try await replay(for: owner, grace: 20 * .millisecond)
    link.send(Array("A".utf8), id: nil)
    for _ in 0..<1000 where owner.reasonDown == nil {
      link.send(Array("C".utf8), id: nil)
      try await Task.sleep(nanoseconds: 10_000_000)
    }
    #expect(owner.reasonDown == "the recording has ended")
  }

  @Test @Loop func `a log of can-utils is played to a device that only receives, as lines of slcan`() async throws {
    let path = temporaryDirectory() + "/drive.log"
    let log = "(1436509052.249713) can0 7DF#0201 T\n(1436509052.250713) can0 044#2A\n(1436509052.251713) can0 18FEEE00#0102\n"
    try log.write(toFile: path, atomically: true, encoding: .utf8)
    let owner = Owner()
    let link = ReplayLink(path: path, speed: 1, disk: Disk(directory: temporaryDirectory()), onlyReceives: true, owner: owner)
    for _ in 0..<1000 where owner.reasonDown == nil { try await Task.sleep(nanoseconds: 10_000_000) }
    #expect(owner.isUp && owner.reasonDown == "the recording has ended")
    #expect(String(decoding: owner.received, as: UTF8.self) == "t04412A\rT18FEEE0020102\r")
    link.close()
  }

  @Test @Loop func `within the recorded time a message without a reply does not end the replay`() async throws {
    let owner = Owner()
    let link = try await replay(for: owner, grace: 3600 * .second)
    link.send(Array("A".utf8), id: nil)
    link.send(Array("C".utf8), id: nil)
    #expect(owner.reasonDown == nil)
    link.send(Array("B".utf8), id: nil)
    link.send(Array("C".utf8), id: nil)
    #expect(owner.reasonDown == "the recording has ended")
  }
}
