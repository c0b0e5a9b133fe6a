import Testing

@testable import Protocols

@Suite("Effects") struct EffectsTests {
  @Test func `a repeated status or fault is dropped, also in a later turn`() {
    var effects = Effects()
    for effect: Effect in [.fault(nil), .status("live"), .status("live"), .fault("no data"), .fault("no data")] { effects.append(effect) }
    #expect(effects.list == [.status("live"), .fault("no data")])
    effects.removeAll()
    for effect: Effect in [.status("live"), .fault(nil), .fault(nil), .status("silent"), .status("live")] { effects.append(effect) }
    #expect(effects.list == [.fault(nil), .status("silent"), .status("live")])
  }
}
