// The bus that vehiclesim shows without a log: a car that accelerates and brakes, and the DBC file of its messages.

import Protocols

extension BusTraffic {
  /// The frames of twenty seconds of driving: messages with both byte orders, a multiplexer, and a 29-bit identifier.
  public static var demo: BusTraffic {
    var frames: [(time: Nanoseconds, frame: CANFrame)] = []
    for tick in 0..<2000 {
      let time = Nanoseconds(tick) * 10 * .millisecond
      // A triangle: up to 120 km/h and back.
      let phase = Double(tick) / 1000
      let speed = 120 * (phase < 1 ? phase : 2 - phase)
      let rpm = 800 + speed * 30
      frames.append((time, frame(0x0C9, bigEndian: [UInt16(rpm * 4)], UInt8(speed / 2), UInt8(tick & 15))))
      if tick % 5 == 0 { frames.append((time, frame(0x3E9, littleEndian: UInt16(speed * 100), UInt8(speed > 60 ? 5 : speed > 1 ? 2 : 0)))) }
      if tick % 10 == 0 {
        // The multiplexer selects one of four wheels.
        let wheel = UInt8(tick / 10 & 3)
        frames.append((time, CANFrame(CANIdentifier(number: 0x4A0, is29Bit: false), [wheel, 230 + wheel, 70 + wheel, 0, 0, 0, 0, 0])))
      }
      if tick % 100 == 0 {
        let bytes = [UInt8(130 + tick / 100)] + [UInt8](repeating: 0xFF, count: 7)
        frames.append((time, CANFrame(CANIdentifier(number: 0x18FE_EE00, is29Bit: true), bytes)))
      }
    }
    return BusTraffic(frames, period: 20 * .second)
  }

  private static func frame(_ number: UInt32, bigEndian words: [UInt16], _ bytes: UInt8...) -> CANFrame {
    CANFrame(CANIdentifier(number: number, is29Bit: false), words.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] } + bytes + [0, 0, 0, 0])
  }

  private static func frame(_ number: UInt32, littleEndian word: UInt16, _ byte: UInt8) -> CANFrame {
    CANFrame(CANIdentifier(number: number, is29Bit: false), [UInt8(word & 0xFF), UInt8(word >> 8), byte, 0])
  }

  /// The DBC file of the frames of `demo`.
  public static let demoDBC = """
    VERSION ""

    NS_ :

    BS_:

    BU_: ECM DASH TPMS

    BO_ 201 EngineData: 8 ECM
     SG_ EngineSpeed : 7|16@0+ (0.25,0) [0|8000] "rpm" DASH
     SG_ Throttle : 16|8@1+ (1,0) [0|100] "%" DASH
     SG_ AliveCounter : 24|4@1+ (1,0) [0|15] "" DASH

    BO_ 1001 VehicleData: 4 DASH
     SG_ VehicleSpeed : 0|16@1+ (0.01,0) [0|300] "km/h" ECM
     SG_ Gear : 16|4@1+ (1,0) [0|15] "" ECM

    BO_ 1184 Tyres: 8 TPMS
     SG_ Wheel M : 0|2@1+ (1,0) [0|3] "" DASH
     SG_ PressureFrontLeft m0 : 8|8@1+ (0.01,0) [0|2.5] "bar" DASH
     SG_ TemperatureFrontLeft m0 : 16|8@1- (1,-40) [-40|85] "degC" DASH
     SG_ PressureFrontRight m1 : 8|8@1+ (0.01,0) [0|2.5] "bar" DASH
     SG_ PressureRearLeft m2 : 8|8@1+ (0.01,0) [0|2.5] "bar" DASH
     SG_ PressureRearRight m3 : 8|8@1+ (0.01,0) [0|2.5] "bar" DASH

    BO_ 2566843904 EngineTemperature: 8 ECM
     SG_ CoolantTemperature : 0|8@1+ (1,-40) [-40|210] "°C" DASH

    CM_ SG_ 201 EngineSpeed "Speed of the crankshaft";
    BA_DEF_ BO_ "GenMsgCycleTime" INT 0 65535;
    BA_DEF_DEF_ "GenMsgCycleTime" 0;
    BA_ "GenMsgCycleTime" BO_ 201 10;
    BA_ "GenMsgCycleTime" BO_ 1001 50;
    BA_ "GenMsgCycleTime" BO_ 1184 100;
    BA_ "GenMsgCycleTime" BO_ 2566843904 1000;
    VAL_ 1001 Gear 0 "park" 2 "drive 2" 5 "drive 5" 15 "not available" ;
    VAL_ 2566843904 CoolantTemperature 255 "sensor fault" ;
    """
}
