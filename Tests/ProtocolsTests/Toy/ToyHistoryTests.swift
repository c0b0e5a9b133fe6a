// Histories of more than 1 MiB: read and sent in pieces, stored in part, and bounded whatever the server sends.

import Testing

@testable import Peers
@testable import Protocols

@Suite struct ToyHistoryTests {
  /// A response with this many facts of a hundred characters each.
  private static func longHistory(_ count: Int) -> [UInt8] {
    let text = String(repeating: #"Honey \"never\" spoils [{. "#, count: 4)
    let rows = (1...count).map { #"{"trivia":{"id":\#($0),"text":"\#(text)","upvotes":1,"downvotes":0},"userVote":0}"# }
    return Array("{\"triviaHistory\": [\(rows.joined(separator: ", "))], \"more\":[{\"id\":1}]}".utf8)
  }

  @Test func `more than 1 MiB is read and sent in pieces, and stored in part`() throws {
    var rig = try ToyRig.loggedIn()
    let body = Self.longHistory(20_000)
    #expect(body.count > 3 << 20)
    rig.answer = { _ in .answered(status: 200, type: "application/json", body: body) }
    let id = rig.run("history")
    #expect(rig.requests.last?.maxLength == 16 << 20)
    var turns = 0
    while rig.outcome(id) == nil, turns < 1000 {
      #expect(rig.machine.nextWake == .min, "it continues in the next turn")
      let count = rig.progress[id]?.count ?? 0
      rig.give(.wake)
      #expect((rig.progress[id]?.count ?? 0) - count <= 1)
      turns += 1
    }
    #expect(turns > body.count / ToyHistoryReader.pieceLength)
    let steps = rig.progress[id] ?? []
    #expect(steps.allSatisfy { $0.rows.count <= ToyLongHistory.factsPerPiece && $0.columns == ToyFact.columns })
    let last = try #require(rig.report(id))
    let rows = steps.flatMap(\.rows) + last.rows
    #expect(rows.compactMap { Int($0[0]) } == Array(1...20_000) && rows[0][1].hasPrefix("Honey \"never\" spoils [{."))
    #expect(last.text == "the last \(last.rows.count) of 20000 facts; set the `more` flag to get all of them")
    #expect(rig.text("facts") == "20000")
    // The part in memory is bounded and has the total count.
    #expect(rig.machine.history?.facts.count == last.rows.count && rig.machine.longHistories.isEmpty && last.rows.count < 10_000)
    #expect(rig.disk["history"].map { $0.count < 1 << 20 } == true)
    try rig.restart()
    rig.isOffline = true
    #expect(rig.text("facts") == "20000")
    #expect(rig.report(rig.run("history"))?.text?.hasSuffix("the last \(last.rows.count) of 20000 facts are stored") == true)
  }

  @Test func `a single fact, a cancelled command and a truncated response, in a long history`() throws {
    var rig = try ToyRig.loggedIn()
    let body = Self.longHistory(10_000)
    rig.answer = { _ in .answered(status: 200, type: "application/json", body: body) }
    let one = rig.run("fact", ["id": .int(7)])
    let gone = rig.run("history")
    rig.give(.wake)
    rig.cancel(gone)
    rig.run(for: .second)
    #expect(rig.report(one)?.rows.map { $0[0] } == ["7"] && rig.results[gone] == nil && rig.machine.longHistories.isEmpty)
    let ends: [[UInt8]] = [
      Array(body.dropLast(2)), Array(body.dropLast()) + Array("]".utf8), Array("[[".utf8) + body, body + body.dropLast(),
    ]
    for broken in ends {
      rig.answer = { _ in .answered(status: 200, type: "application/json", body: broken) }
      let id = rig.run("history")
      rig.run(for: .second)
      #expect(rig.report(id)?.text?.contains("no list of facts") == true, "the stored facts are returned with their age")
    }
    rig.answer = { _ in .answered(status: 200, type: "application/json", body: body) }
    let ids = (0..<5).map { _ in rig.run("history") }
    #expect(rig.code(ids[4]) == "busy")
    rig.give(.stopping)
    #expect(ids.prefix(4).allSatisfy { rig.code($0) == "not-connected" } && rig.machine.nextWake == nil)
  }

  @Test func `reading in pieces gives the same result as reading at once`() throws {
    for text in [
      #"{"triviaHistory":[]}"#, #" [ {"triviaId":3,"triviaText":"x"} , 7, {"id":4} ]"#,
      #"{"a":"triviaHistory","b":[{"id":1}],"triviaHistory":[{"id":2}]}"#,
      #"{"a":{"triviaHistory":[{"id":1}]},"triviaHistory":[{"id":2,"text":"\u005b\\"},{"id":2,"text":"z"}]}"#, #"{"b":[1]}"#, "7", "", "{",
      "]",
    ] {
      var reader = ToyHistoryReader(Array(text.utf8))
      var facts: [ToyFact]?
      if case .done(let all) = reader.step() { facts = all }
      #expect(facts == JSONNode(untrusted: Array(text.utf8)).flatMap { ToyHistory($0, user: 1)?.facts }, "\(text)")
    }
  }

  @Test func `reading ends for any input`() {
    var random = SeededRandom(seed: 22)
    let whole = Array(#"{"x":[{"id":7}],"triviaHistory":[{"trivia":{"id":1,"text":"a\"]"},"userVote":1},{"trivia":{"id":2}}]}"#.utf8)
    var outcomes: Set<Int> = []
    for _ in 0..<5000 {
      var body = whole
      for _ in 0..<(random.next() % 4) {
        let place = Int(random.next() % UInt64(body.count))
        if random.next() % 2 == 0 { body.remove(at: place) } else { body[place] = whole[Int(random.next() % UInt64(whole.count))] }
      }
      var reader = ToyHistoryReader(body)
      if case .done(let facts) = reader.step() {
        outcomes.insert(facts.count)
        #expect(facts.count <= 3)
      } else {
        outcomes.insert(-1)
      }
    }
    #expect(outcomes.isSuperset(of: [-1, 0, 1, 2]))
  }
}
