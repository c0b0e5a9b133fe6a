// The simulated petrol car answers each service of SAE J1979 (OBD-II) as its two ECUs would.

import Protocols
import Testing

@testable import Peers

@Suite("The simulated petrol car")
struct PetrolCarTests {
  /// A key that is on for a minute before the drive begins.
  static let standing = Ignition([.init(.on, at: 0), .init(.run, at: 60 * .second)])

  @Test("supports exactly the PIDs of its bitmaps")
  func bitmaps() {
    var car = PetrolCar()
    for (address, expected) in [(0x7E0, 51), (0x7E1, 4)] as [(UInt32, Int)] {
      var named: Set<UInt8> = []
      var record: UInt8? = 0
      while let first = record {
        let bits = car.replies(to: [0x01, first], at: address, 0).first?.payload.dropFirst(2) ?? []
        let number = bits.reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        for bit in 0..<31 where number & 0x8000_0000 >> UInt32(bit) != 0 { named.insert(first + UInt8(bit) + 1) }
        record = number & 1 == 1 ? first + 0x20 : nil
      }
      #expect(named.count == expected, "\(named.sorted())")
      for number in 1...0xFF as ClosedRange<UInt8> where number % 0x20 != 0 {
        let payload = car.replies(to: [0x01, number], at: address, 0).first?.payload
        #expect((payload != nil) == named.contains(number), "\(number)")
        #expect(payload?.starts(with: [0x41, number]) ?? true)
      }
    }
  }

  @Test("answers up to six PIDs at once with the supported ones, and does not answer seven")
  func severalParameters() throws {
    var car = PetrolCar()
    let reply = try #require(car.replies(to: [0x01, 0x0C, 0x02, 0x0D, 0x05], at: 0x7E0, 0).first)
    #expect(reply.payload == [0x41, 0x0C, 0x0C, 0x30, 0x0D, 0x00, 0x05, 0x3C])
    #expect(car.replies(to: [0x01, 0x04, 0x05, 0x0C, 0x0D, 0x0F, 0x11], at: 0x7DF, 0).map(\.id) == [0x7E8, 0x7E9])
    #expect(car.replies(to: [0x01, 0x04, 0x05, 0x0C, 0x0D, 0x0F, 0x11, 0x10], at: 0x7DF, 0).isEmpty)
    #expect(car.replies(to: [0x01, 0x02], at: 0x7DF, 0).isEmpty && car.replies(to: [0x01], at: 0x7DF, 0).isEmpty)
    #expect(car.replies(to: [0x01, 0x04], at: 0x7DF, 0).map(\.id) == [0x7E8], "the transmission has no engine load")
    #expect(car.replies(to: [0x01, 0x0C], at: 0x7E1, 0).map(\.id) == [0x7E9])
    #expect(car.replies(to: [0x01, 0x0C], at: 0x7E2, 0).isEmpty)
  }

  @Test("returns stored, pending and permanent codes with their count")
  func codes() {
    var car = PetrolCar()
    #expect(car.replies(to: [0x03], at: 0x7DF, 0).map(\.payload) == [[0x43, 2, 0x01, 0x33, 0x04, 0x20], [0x43, 1, 0x07, 0x15]])
    #expect(car.replies(to: [0x07], at: 0x7DF, 0).map(\.payload) == [[0x47, 1, 0x01, 0x71], [0x47, 0]])
    #expect(car.replies(to: [0x0A], at: 0x7DF, 0).map(\.payload) == [[0x4A, 1, 0x04, 0x20], [0x4A, 0]])
    #expect(car.replies(to: [0x01, 0x01], at: 0x7DF, 0).map(\.payload) == [[0x41, 1, 0x82, 0x07, 0x65, 0], [0x41, 1, 0x01, 0x04, 0, 0]])
  }

  @Test("rejects clearing while the engine runs")
  func refusesToClear() {
    var car = PetrolCar()
    #expect(car.replies(to: [0x04], at: 0x7DF, .second).map(\.payload) == [[0x7F, 0x04, 0x22], [0x7F, 0x04, 0x22]])
    #expect(car.replies(to: [0x03], at: 0x7E0, .second).first?.payload.count == 6)
  }

  @Test("clears codes, freeze frame and readiness, but not the permanent code")
  func clears() {
    var car = PetrolCar(.can11, PetrolCarTests.standing)
    #expect(car.replies(to: [0x02, 0x02, 0x00], at: 0x7DF, 0).map(\.payload) == [[0x42, 0x02, 0x00, 0x01, 0x33]])
    #expect(car.replies(to: [0x04], at: 0x7DF, 0).map(\.payload) == [[0x44], [0x44]])
    #expect(car.replies(to: [0x03], at: 0x7DF, 0).map(\.payload) == [[0x43, 0], [0x43, 0]])
    #expect(car.replies(to: [0x07], at: 0x7E0, 0).map(\.payload) == [[0x47, 0]])
    #expect(car.replies(to: [0x0A], at: 0x7E0, 0).map(\.payload) == [[0x4A, 1, 0x04, 0x20]])
    #expect(car.replies(to: [0x02, 0x02, 0x00], at: 0x7DF, 0).map(\.payload) == [[0x42, 0x02, 0x00, 0, 0]])
    #expect(car.replies(to: [0x02, 0x0C, 0x00], at: 0x7DF, 0).isEmpty)
    #expect(car.replies(to: [0x01, 0x01], at: 0x7E0, 0).map(\.payload) == [[0x41, 0x01, 0x00, 0x77, 0x65, 0x65]])
    for (number, empty) in [(0x21, [0, 0]), (0x30, [0]), (0x31, [0, 0]), (0x4D, [0, 0]), (0x4E, [0, 0])] as [(UInt8, [UInt8])] {
      #expect(car.replies(to: [0x01, number], at: 0x7E0, 0).first?.payload == [0x41, number] + empty)
    }
    let later = 1200 * .second
    #expect(
      car.replies(to: [0x01, 0x01], at: 0x7E0, later).first?.payload == [0x41, 0x01, 0x00, 0x07, 0x65, 0x04],
      "most monitors complete while driving")
  }

  @Test("has one freeze frame, of the first code")
  func hasFreezeFrame() throws {
    var car = PetrolCar()
    let all = try #require(car.replies(to: [0x02, 0x00, 0x00], at: 0x7DF, 0).first?.payload)
    #expect(all == [0x42, 0x00, 0x00, 0x7E, 0x3F, 0x80, 0x03])
    let freezeFrame = try #require(car.replies(to: [0x02, 0x0C, 0x00], at: 0x7E0, 0).first?.payload)
    #expect(freezeFrame.count == 5 && freezeFrame.starts(with: [0x42, 0x0C, 0x00]))
    #expect(
      car.replies(to: [0x02, 0x0C, 0x00], at: 0x7E0, 500 * .second).first?.payload == freezeFrame, "the freeze frame does not change")
    #expect(car.replies(to: [0x02, 0x0C, 0x00, 0x0D, 0x00], at: 0x7E0, 0).first?.payload.count == 8)
    #expect(car.replies(to: [0x02, 0x0C, 0x01], at: 0x7DF, 0).isEmpty && car.replies(to: [0x02, 0x0C], at: 0x7DF, 0).isEmpty)
    #expect(car.replies(to: [0x02, 0x5E, 0x00], at: 0x7DF, 0).isEmpty)
    #expect(car.replies(to: [0x02, 0x00, 0x00], at: 0x7E1, 0).first?.payload == [0x7F, 0x02, 0x11])
  }

  @Test("returns its monitors, VIN, calibration IDs, CVNs and ECU names")
  func identity() {
    var car = PetrolCar()
    #expect(car.replies(to: [0x06, 0x00], at: 0x7DF, 0).map(\.payload) == [[0x46, 0x00, 0x80, 0, 0, 0x01]])
    #expect(car.replies(to: [0x06, 0x21], at: 0x7DF, 0).map(\.payload) == [[0x46, 0x21, 0x80, 0x20, 0x01, 0x1A, 0, 0, 0x01, 0x00]])
    #expect(car.replies(to: [0x06, 0x02], at: 0x7DF, 0).isEmpty)
    #expect(car.replies(to: [0x09, 0x00], at: 0x7DF, 0).map(\.payload) == [[0x49, 0, 0x54, 0x40, 0, 0], [0x49, 0, 0x14, 0x40, 0, 0]])
    let vin = Array("WVWZZZ1KZAW000042".utf8)
    #expect(car.replies(to: [0x09, 0x02], at: 0x7DF, 0).map(\.payload) == [[0x49, 0x02, 0x01] + vin])
    #expect(car.replies(to: [0x22, 0xF1, 0x90], at: 0x7E0, 0).map(\.payload) == [[0x62, 0xF1, 0x90] + vin])
    #expect(car.replies(to: [0x09, 0x04], at: 0x7DF, 0).map(\.payload.count) == [19, 19])
    #expect(car.replies(to: [0x09, 0x06], at: 0x7DF, 0).map(\.payload.count) == [7, 7])
    #expect(car.replies(to: [0x09, 0x0A], at: 0x7DF, 0).map(\.payload.count) == [23, 23])
    #expect(car.replies(to: [0x09, 0x01], at: 0x7DF, 0).isEmpty)
    #expect(car.replies(to: [0x3E, 0x00], at: 0x7E1, 0).map(\.payload) == [[0x7E, 0x00]])
    #expect(car.replies(to: [0x22, 0x01, 0x01], at: 0x7E0, 0).map(\.payload) == [[0x7F, 0x22, 0x31]])
    #expect(car.replies(to: [0x2E, 0x01], at: 0x7E0, 0).map(\.payload) == [[0x7F, 0x2E, 0x11]])
    #expect(car.replies(to: [0x2E, 0x01], at: 0x7DF, 0).isEmpty && car.replies(to: [], at: 0x7DF, 0).isEmpty)
  }

  @Test("has consistent values over a drive cycle of ten minutes")
  func drive() throws {
    var car = PetrolCar()
    func value(_ number: UInt8, _ now: Instant) throws -> Double {
      let payload = try #require(car.replies(to: [0x01, number], at: 0x7E0, now).first?.payload)
      return Double(payload.dropFirst(2).reduce(0) { $0 << 8 | Int($1) })
    }
    var (overruns, moves, gears, before) = (0, 0, Set<Int>(), (odometer: 0.0, fuel: 0.0, coolant: 0.0))
    for tick in 0..<2_400 {
      let now = Nanoseconds(tick) * 250 * .millisecond
      let (engine, speed) = (try value(0x0C, now) / 4, try value(0x0D, now))
      let (air, rate) = (try value(0x10, now) / 100, try value(0x5E, now) / 20)
      #expect((770...4000).contains(engine) && (0...110).contains(speed))
      let (load, pressure) = (try value(0x04, now) / 2.55, try value(0x0B, now))
      let (system, lambda) = (try value(0x03, now), try value(0x44, now))
      #expect((0...100).contains(load) && (13...200).contains(pressure))
      #expect((1...120).contains(air))
      if rate > 0 {
        #expect(abs(air - rate * 745 / 3600 * 14.7) < 0.2, "14.7 kg of air burn one of petrol")
        #expect(lambda == 32_768 && system == 0x0200)
      } else {
        overruns += 1
        #expect(system == 0x0400 && lambda > 60_000 && speed > 0)
      }
      if speed == 0 { #expect(engine < 800 && rate < 1) }
      if speed > 30 { gears.insert(Int((engine / speed).rounded())) }
      moves += speed > 0 ? 1 : 0
      let (odometer, fuel, coolant) = (try value(0xA6, now), try value(0x2F, now), try value(0x05, now))
      if tick > 0 { #expect(odometer >= before.odometer && fuel <= before.fuel && coolant >= before.coolant) }
      before = (odometer, fuel, coolant)
    }
    #expect(overruns > 100 && moves > 1500 && gears.count >= 4)
    #expect((80...95).contains(before.coolant - 40))
    #expect(try value(0x1F, 600 * .second) == 600)
    #expect(try value(0xA6, 600 * .second) - 482_130 > 60, "more than six kilometres in ten minutes")
    #expect(try value(0x42, 0) == 14_200)
  }
}
