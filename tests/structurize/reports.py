"""Two reports in the forms that real ones have: flattened tables, and Markdown tables cut by page breaks."""

from prompts.language.segment import language_of
from storage.records import Document

BALANCE = """Table of Contents

NORDLICHT FERRIES, INC.

(Exact name of registrant as specified in its charter)

For the quarterly period ended March 31, 2024

As of May 1, 2024, there were 7,240,905 shares of common stock, par value $0.01, outstanding.

Nordlicht Ferries, Inc.

Condensed Consolidated Balance Sheets

(In thousands, except shares and per share amounts)

                                                        March 31,     December 31,

                                                          2024            2023

                                                       (unaudited)

ASSETS

Current assets

Cash and cash equivalents                           $     1,308     $       2,204\xa0

Accounts receivable (less allowance of $144 and $474)\u200b          778             913

 at March 31, 2024 and December 31, 2023

Contract assets                                               —              \u200b 35

Total current assets                                      2,086           3,152

Accumulated deficit                                        (415)           (409)

7

Condensed Consolidated Statements of Operations

(In thousands, except per share amounts)

                                                    Three Months Ended March 31,

                                                        2024            2023

Revenue                                             $     5,448     $     6,120

Net loss                                            $       (63     )    $     12

Net loss per common share:

Basic and diluted                                   $     (0.63)    $      0.12
"""

REPORT = """证券代码：600999    证券简称：北湖港务
北湖港务股份有限公司2024年第一季度报告
1、合并资产负债表
2024年 03月 31日
单位：万元
|项目|期末余额|期初余额|
|---|---|---|
|流动资产：|-|-|
|货币资金|1,832.61|2,326.48|
|应收账款|431.54|-|

|应付账款|1,453.64|1,563.37|
|---|---|---|
|资产总计|12,096.62|12,664.77|法定代表人：吴湖
2、合并利润表
单位：元
|项目|本期发生额|上期发生额|
|---|---|---|
|其中：营业收入|1,321,990.13|30,157,271.66||减：营业成本|686,981.08|18,308,615.92|
|---|---|---|
|五、净利润（净亏损以“－”号填列）|-15,056,638.68|-8,394,277.73|
母公司利润表
单位：元
|项目|本期发生额|上期发生额|
|---|---|---|
|净利润|99.00|98.00|
"""


def document(text: str, title: str = "report") -> Document:
    return Document(id=f"{title}.txt", title=title, text=text, language=language_of(text), parts=())
