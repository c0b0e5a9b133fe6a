// The further data records of the electric cars are consistent with the first one and with the drive cycle.

import Protocols
import Testing

@testable import Peers

@Suite("The simulated electric car's data records")
struct ElectricCarRecordTests {
  private let now: Nanoseconds = 20 * .second  // in the first cruise, at 50 km/h

  private func data(_ car: ElectricCar, _ request: [UInt8], at ecu: UInt32, _ now: Instant? = nil) -> [UInt8]? {
    let reply = car.replies(to: request, at: ecu, now ?? self.now).first
    guard let reply, reply.id == ecu + 8, reply.payload.first == request[0] + 0x40 else { return nil }
    return Array(reply.payload.dropFirst(request.count))
  }

  @Test("record 05: lengths, state of charge, health, temperatures, remaining energy")
  func record5() throws {
    for (model, request, length) in [
      (ElectricCar.Model.eGMP, [0x22, 0x01, 0x05] as [UInt8], 46), (.kona, [0x22, 0x01, 0x05], 46), (.ioniq28, [0x21, 0x05], 45),
    ] {
      let car = ElectricCar(model)
      let record = try #require(data(car, request, at: 0x7E4))
      let first = try #require(data(car, [request[0]] + (request.count == 3 ? [0x01, 0x01] : [0x01]), at: 0x7E4))
      #expect(record.count + request.count == length)
      #expect(record[31] == first[4] - 1, "the display shows half a percent less")
      #expect((900...1000).contains(VirtualHost.number(record, 25...26)))
      #expect(record[9...15].allSatisfy { abs(Int($0) - Int(first[16])) <= 2 })
      if model == .eGMP {
        #expect(abs(Double(VirtualHost.number(record, 28...29)) * 2 - 77_400 * Double(first[4]) / 200) < 400)
        #expect(record[39...42].allSatisfy { $0 > 0 })
      }
    }
    #expect(data(ElectricCar(.kona), [0x22, 0x01, 0x05], at: 0x7E4)?.starts(with: [0xFF, 0xF7, 0xE7, 0xFF]) == true)
    #expect(data(ElectricCar(.kona), [0x22, 0x01, 0x01], at: 0x7E4)?.starts(with: [0xFF, 0xF7, 0xE7, 0xFF]) == true)
  }

  @Test("a Kona sends the speed of its one motor twice, and does not answer standard requests")
  func kona() throws {
    let car = ElectricCar(.kona)
    let record = try #require(data(car, [0x22, 0x01, 0x01], at: 0x7E4))
    #expect(VirtualHost.number(record, 53...54) == 3360 && VirtualHost.number(record, 55...56) == 3360)
    #expect(record[50] == 0x0D && record[9] == 0x01)
    #expect(car.replies(to: [0x01, 0x00], at: 0x7DF, now).isEmpty && car.replies(to: [0x01, 0x00], at: 0x7E0, now).isEmpty)
    #expect(car.replies(to: [0x09, 0x02], at: 0x7DF, now).map(\.id) == [0x7E8])
  }

  @Test("cells: 32 per record, all cells, and the highest at the position in the first record")
  func cells() throws {
    for (model, records, count) in [
      (
        ElectricCar.Model.eGMP,
        [[0x22, 1, 2], [0x22, 1, 3], [0x22, 1, 4], [0x22, 1, 0x0A], [0x22, 1, 0x0B], [0x22, 1, 0x0C]] as [[UInt8]], 192
      ),
      (.kona, [[0x22, 1, 2], [0x22, 1, 3], [0x22, 1, 4]], 96), (.ioniq28, [[0x21, 2], [0x21, 3], [0x21, 4]], 96),
    ] {
      let car = ElectricCar(model)
      let first = try #require(data(car, model == .ioniq28 ? [0x21, 0x01] : [0x22, 0x01, 0x01], at: 0x7E4))
      let cells = try records.flatMap { request in try #require(data(car, request, at: 0x7E4)).dropFirst(4) }
      #expect(cells.count == count)
      #expect(cells.max() == first[23] && cells.firstIndex(of: first[23]) == Int(first[24]) - 1)
      #expect(cells.min() == first[25])
    }
    #expect(data(ElectricCar(.kona), [0x22, 1, 0x0A], at: 0x7E4) == nil)
  }

  @Test("speed, gear, pedal and 12 V agree in all records")
  func vehicle() throws {
    let car = ElectricCar(.eGMP)
    let drive = try #require(data(car, [0x22, 0xE0, 0x04], at: 0x7E2))
    func little(_ record: [UInt8], _ place: Int) -> Double {
      Double(Int16(bitPattern: UInt16(record[place + 1]) << 8 | UInt16(record[place])))
    }
    #expect(abs(little(drive, 10) / 64 - 50) < 0.1)
    #expect(abs(little(drive, 12) * 0.0004883 - 14.4) < 0.01)
    #expect((1...100).contains(little(drive, 8) / 512))
    let brakes = try #require(data(car, [0x22, 0x01, 0x04], at: 0x7D1))
    #expect(brakes[6] == 50 && brakes[8] == 4)
    #expect(data(car, [0x22, 0x01, 0x00], at: 0x7B3)?[29] == 50)
    let charger = try #require(data(car, [0x22, 0xE0, 0x11], at: 0x7E5))
    #expect(charger[20] == 88 && VirtualHost.number(charger, 18...19) == 32575)
    let older = try #require(data(ElectricCar(.ioniq28), [0x21, 0x01], at: 0x7E2))
    #expect(abs(little(older, 13) / 100 * 1.609344 - 50) < 0.1 && older[5] == 0x08 && older[12] > 0)
    let backwards = Nanoseconds(200 * .second)
    #expect(data(ElectricCar(.ioniq28), [0x21, 0x01], at: 0x7E2, backwards)?[5] == 0x02)
    #expect(data(car, [0x22, 0x01, 0x04], at: 0x7D1, backwards)?[8] == 2)
    let motor = try #require(data(ElectricCar(.ioniq28), [0x21, 0x02], at: 0x7E3))
    #expect(motor[14] < motor[15] && motor[14] > 20)
    #expect(data(ElectricCar(.ioniq28), [0x21, 0x02], at: 0x7E2)?[23] == 88)
  }

  @Test("climate, odometer, tyres and coolant")
  func climateAndOdometer() throws {
    let car = ElectricCar(.eGMP)
    let climate = try #require(data(car, [0x22, 0x01, 0x00], at: 0x7B3))
    #expect(Double(climate[6]) / 2 - 40 == 11.5 && climate[5] > climate[6])
    for (model, stride) in [(ElectricCar.Model.eGMP, 5), (.kona, 4)] {
      let tyres = try #require(data(ElectricCar(model), [0x22, 0xC0, 0x0B], at: 0x7A0))
      for tyre in 0..<4 {
        #expect((35...38).contains(Double(tyres[4 + tyre * stride]) / 5) && (12...20).contains(tyres[5 + tyre * stride] - 50))
      }
    }
    #expect(data(car, [0x22, 0x01, 0x06], at: 0x7E4)?[4] == 22)
    let odometer = try #require(data(car, [0x22, 0xB0, 0x02], at: 0x7C6, 0))
    let later = try #require(data(car, [0x22, 0xB0, 0x02], at: 0x7C6, 600 * .second))
    #expect(VirtualHost.number(odometer, 6...8) == 15_230 && (6...12).contains(VirtualHost.number(later, 6...8) - 15_230))
  }

  @Test("ECUs reject unknown records, absent ECUs do not answer, and replies outside 7E8 to 7EF need a filter")
  func refusals() throws {
    let car = ElectricCar(.eGMP)
    #expect(car.replies(to: [0x22, 0xE0, 0x05], at: 0x7E2, now).map(\.payload) == [[0x7F, 0x22, 0x31]])
    #expect(car.replies(to: [0x21, 0x01], at: 0x7E2, now).map(\.payload) == [[0x7F, 0x21, 0x11]])
    #expect(car.replies(to: [0x21, 0x02], at: 0x7E3, now).isEmpty && car.replies(to: [0x22, 0x01, 0x01], at: 0x7E6, now).isEmpty)
    #expect(ElectricCar(.kona).replies(to: [0x22, 0xE0, 0x11], at: 0x7E5, now).isEmpty)
    #expect(ElectricCar(.ioniq28).replies(to: [0x21, 0x01], at: 0x7DF, now).map(\.id) == [0x7EA, 0x7EC])
    var host = try VirtualHost.open(car, after: ["ATE0", "ATS0", "ATH1", "ATSH7C6"])
    #expect(host.ask("22B002") == "NO DATA\r\r>")
    host.ask("ATCRA7CE")
    #expect(host.lines("22B002").first == "7CE100F62B002E00000")
  }
}
